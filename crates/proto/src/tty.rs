//! The tty wire over a network: negotiation and control messages.
