"""`python -m policysched`: the command line."""

from policysched.cli import main

main()
