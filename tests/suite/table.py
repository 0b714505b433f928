"""Prints what a run came to: seconds of each step, the slowest cases, what was skipped and why, what failed."""

SLOWEST = 10


def show(steps, seconds):
    """Prints the table, and returns the exit code of the run."""
    for step in steps:
        for failure in step.failures:
            print(f"\n==== {step.part}: {step.name}\n{failure}")
    width = max(len(step.name) for step in steps)
    print(f"\n{'part':10} {'step':{width}} {'seconds':>8} {'passed':>7} {'failed':>7} {'skipped':>8}")
    for step in steps:
        print(f"{step.part:10} {step.name:{width}} {step.seconds:8.1f} {step.passed:7} {step.failed:7} {len(step.skipped):8}")
    slow = sorted((case for step in steps for case in step.slow), reverse=True)[:SLOWEST]
    if slow:
        print("\nthe slowest cases")
        for taken, program, case in slow:
            print(f"{taken:8.1f} s  {program}: {case}")
    skipped = [(step, *case) for step in steps for case in step.skipped]
    if skipped:
        print("\nskipped")
        for step, case, reason in skipped:
            print(f"  {step.part}: {case}: {reason}")
    failed = sum(step.failed for step in steps)
    print(f"\nin {seconds / 60:.1f} minutes:")
    print(f"{sum(step.passed for step in steps)} passed, {failed} failed, {len(skipped)} skipped", flush=True)
    return 1 if failed else 0
