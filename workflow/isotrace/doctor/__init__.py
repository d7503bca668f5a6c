"""What would go wrong with a study on this machine, before it does: one line a finding, with what to do."""
