"""Plans, predicts and explains pipeline-parallel training.

Schedules, scenarios, costs, predictions and timelines are values; `help` shows what each can do. The numbers equal
those of the program ``pipewright``, which comes with this package."""

from ._pipewright import (
    Infeasible,
    InputError,
    LayerCosts,
    Prediction,
    Program,
    Scenario,
    Schedule,
    Timeline,
    __version__,
    explain,
    explain_hang,
    models,
    plans,
    read_timeline,
    schedule,
    schedules,
    simulate,
)

__all__ = [
    "Infeasible", "InputError", "LayerCosts", "Prediction", "Program", "Scenario", "Schedule", "Timeline", "__version__",
    "explain", "explain_hang", "models", "plans", "read_timeline", "schedule", "schedules", "simulate",
]
