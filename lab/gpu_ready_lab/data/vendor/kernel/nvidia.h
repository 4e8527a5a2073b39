/* SPDX-License-Identifier: GPL-2.0-or-later */
const char *nvidia_driver_version(void);
