"""Files that `check` reads are no modules of ours."""

collect_ignore_glob = ["files/*"]
