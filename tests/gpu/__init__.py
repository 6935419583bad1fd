"""The GPU kit: cubins on a real device, judged by exported expectations."""
