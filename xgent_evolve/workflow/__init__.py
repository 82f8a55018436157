"""Study plans: each module reads like the plan that it carries out."""
