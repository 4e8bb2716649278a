#!/usr/bin/env python3
"""Prints the schedules that a scenario can name and that train, one per line."""

import json
import pathlib

root = pathlib.Path(__file__).resolve().parent.parent
with open(root / "scenarios/schema/scenario.schema.json") as file:
    schema = json.load(file)
for name in schema["properties"]["pipeline"]["properties"]["schedule"]["oneOf"][0]["enum"]:
    if "inference" not in name:
        print(name)
