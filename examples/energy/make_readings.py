"""Makes hourly readings of electricity meters, with days, weeks, weather, noise and gaps."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def write_readings(folder: Path, meters: int = 8, days: int = 120) -> None:
    """Writes `energy.csv`: the time, the meter, the load and the temperature of each hour; one reading in a hundred is missing."""
    rng = np.random.default_rng(0)
    hours = np.arange(24 * days)
    times = np.datetime64("2024-01-01T00:00:00") + hours.astype("timedelta64[h]")
    temperature = 8 - 9 * np.cos(2 * np.pi * hours / 8766) - 4 * np.cos(2 * np.pi * (hours - 4) / 24)
    temperature += np.convolve(rng.normal(0, 1.2, len(hours) + 47), np.ones(48) / 7, "valid")
    weekend = (hours // 24) % 7 >= 5
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "energy.csv", "w", encoding="utf-8") as file:
        file.write("time,meter,load,temperature\n")
        for meter in range(meters):
            size, heating, evening = rng.uniform(0.6, 1.4), rng.uniform(0.02, 0.06), rng.uniform(17, 20)
            daily = np.exp(-(((hours % 24) - evening) ** 2) / 8) + 0.6 * np.exp(-(((hours % 24) - 7.5) ** 2) / 3)
            load = size * (0.4 + daily * np.where(weekend, 0.8, 1.0) + heating * np.maximum(16 - temperature, 0))
            load += np.convolve(rng.normal(0, 0.04, len(hours) + 2), np.ones(3) / 2, "valid")
            gone = rng.random(len(hours)) < 0.01
            for i, time in enumerate(times):
                value = "" if gone[i] else f"{load[i]:.4f}"
                file.write(f"{str(time).replace('T', ' ')},meter_{meter},{value},{temperature[i]:.2f}\n")


if __name__ == "__main__":
    write_readings(Path("energy"))
