#!/bin/sh
# Asks what to install, and installs it.
name=$(dialog --stdout --backtitle "Setup" --title "Name" --inputbox "Name of this machine:" 8 40 "box") || exit 3
part=$(dialog --stdout --backtitle "Setup" --title "Parts" --default-item web --menu "Install on $name:" 12 40 3 \
  base "The base system" web "A web server" mail "A mail server") || exit 3
dialog --backtitle "Setup" --title "Sure?" --defaultno --yesno "Install $part on $name?" 7 40 || exit 4
clear
echo "installed $part on $name"
