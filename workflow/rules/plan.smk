localrules:
    calibration,
    plan,


rule calibration:
    output:
        calibration="<results>/calibration.json",
    log:
        "<logs>/calibration.log",
    params:
        spec=P.calibration(),
    script:
        "../scripts/calibration.py"


# No output is declared, so that it is shown each time; <results>/plan.json is written beside the calibration.
rule plan:
    """Sizes, jobs, time and memory of the study, before anything else runs."""
    input:
        calibration="<results>/calibration.json",
    log:
        "<logs>/plan.log",
    threads: workflow.cores or 1
    params:
        spec=P.plan(),
    script:
        "../scripts/plan.py"
