"""What a channel shows and hears, through one house with the pigeon platform."""
