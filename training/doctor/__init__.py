"""The doctor: checks a machine before it joins a run, and names each problem, its cause and fix.

These modules can be imported without the packages of the `training` extra, so the doctor can name
the missing ones.
"""
