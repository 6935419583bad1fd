"""`python -m orias`: the command line of `orias`."""

from orchestrator.__main__ import main

if __name__ == "__main__":
    main()
