"""The doctor: checks a machine before it joins a run, and names each problem, its cause and fix.

    findings     the checks and their results: `POINTS`, `Finding`
    setup        the options of the volunteer about to join
    software     system, Python, packages, open files
    hardware     folder, disk, memory, GPU, 8-bit library
    line         port, entry points, reachability
    clock        readings of other clocks
    services     access, training data, live data
    examination  all of these, each with a deadline
    command      `python -m training doctor`, and its short form before `join`

These modules can be imported without the packages of the `training` extra, so the doctor can name
the missing ones.
"""
