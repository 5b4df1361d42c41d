"""Training plain networks by hand-written gradients, without autograd."""
