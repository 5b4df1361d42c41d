"""For every test and doctest: signals as an interactive user has them."""

import signal
import threading

# A job started in the background of a shell inherits an ignored SIGINT; tests press Ctrl-C.
if threading.current_thread() is threading.main_thread():
    if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None):
        signal.signal(signal.SIGINT, signal.default_int_handler)
