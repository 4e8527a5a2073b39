/* hold FILE...: keeps files open until it is ended. O_PATH: no driver answers behind the device nodes of a lab host. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int count, char **words) {
    for (int i = 1; i < count; i++)
        if (open(words[i], O_PATH) < 0) {
            perror(words[i]);
            return 1;
        }
    for (;;)
        pause();
}
