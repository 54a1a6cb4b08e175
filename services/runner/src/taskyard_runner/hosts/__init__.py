"""Processes of the warden that run a workload which is no program of the host; without grpc."""
