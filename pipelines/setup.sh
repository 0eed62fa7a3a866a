# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What every script here starts with: installs what is missing, builds the plugin, tells GStreamer where it is, sets
# $sample to a video that a phone has taken, and $screen to an element that shows video. Sourced by bash, not run.
. "$(dirname "${BASH_SOURCE[0]}")/../tests/setup.sh"

need_packages "${build_packages[@]}" gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good \
  gstreamer1.0-plugins-bad gstreamer1.0-libav gir1.2-gst-plugins-base-1.0 python3-gi python3-pil fonts-dejavu-core \
  forensics-samples-files
build_release

# shellcheck disable=SC2034 # both are for the script that sources this
sample=/usr/share/forensics-samples/original-files/movie1/VID_20191220_170832.mp4

# Without a display autovideosink tries DirectFB, which crashes.
screen=(autovideosink)
if [ -z "${DISPLAY-}${WAYLAND_DISPLAY-}" ]; then
  # shellcheck disable=SC2034
  screen=(fakesink sync=true)
fi
