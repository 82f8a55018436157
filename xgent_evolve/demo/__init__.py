"""An embedded host, a scripted model and a small study: the main job without anything paid."""
