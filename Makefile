# The ten things a developer does. Each target is the script of the same name; `scripts/NAME --help` says more.
# Arguments: make unit ARGS="tests/unit/domain -x"

.PHONY: start setup test check fix unit coverage docs bench long

start setup test check fix unit coverage docs bench long:
	@scripts/$@ $(ARGS)
