"""Simulation-based calibration: the exact chain passes, a slightly wrong model does not."""

import csv
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "experiments"))

import calibration_of_methods as calibration
