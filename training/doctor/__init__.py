"""The doctor: looks at a machine before it joins a run, and names each problem, its cause and fix.

    findings     what is looked at, and what came out: `POINTS`, `Finding`
    setup        what a volunteer is about to do
    software     system, Python, packages, open files
    hardware     folder, disk, memory, GPU, 8-bit library
    line         port, entry points, reachability
    clock        readings of other clocks
    services     access, training data, live data
    examination  all of it, each with a deadline
    command      `python -m training doctor`, and its short form before `join`

None of these needs the packages of the `training` extra in order to be imported, so that the
doctor can say which of them is missing.
"""
