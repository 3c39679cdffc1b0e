/* SPDX-License-Identifier: MIT */
#include "pipe.h"

#include <errno.h>
#include <fcntl.h>

void pipe_widen(int fd)
{
    int saved = errno;
    if (fcntl(fd, F_GETPIPE_SZ) == (int)PIPE_USUAL_BYTES)
        fcntl(fd, F_SETPIPE_SZ, PIPE_WIDE_BYTES);
    errno = saved;
}
