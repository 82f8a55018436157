"""From a repository and task folders to frozen bundles and a Protocol."""
