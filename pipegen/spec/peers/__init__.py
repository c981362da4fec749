"""Steps of Keras, torchvision and Albumentations, and the steps of a spec that do the same; read only where a spec has a mistake."""
