"""State of this process: devices, variables, options and TensorFlow's log lines."""
