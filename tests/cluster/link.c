/* link - a TCP proxy with the delay of a network, which can be cut.
 *
 *     link ADDRESS PORT SERVER-ADDRESS SERVER-PORT
 *
 * Reads orders from standard input, a line each, and answers each with "ok" once it holds:
 *
 *     delay N    each piece is forwarded N nanoseconds after it came, in both directions
 *     freeze     connections are accepted and nothing is forwarded, as when a cable is pulled
 *     cut        all connections are closed and new ones refused, as when the server has died
 *     mend       ends both; what a frozen connection holds is forwarded
 *
 * It ends with its input. One thread serves all connections, so that a delay of 0.1 ms is not lost in waking others,
 * and it sleeps for every delay, so that the processors are left to what is measured. It does not know what is said.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 1000, PIECE = 64 << 10, WAITING = 64 };

struct piece {
    struct piece *next;
    int64_t due;
    size_t length, sent; /* a length of 0 is the end of what is sent */
    char bytes[];
};

/* What goes from one socket to another. */
struct half {
    struct piece *first, *last;
    int waiting, is_ended, is_full;
};

/* [0] is the client's, [1] the server's, -1 until it is connected. halves[n] is read from sockets[n]. */
struct connection {
    int sockets[2];
    struct half halves[2];
};

static struct connection connections[CONNECTIONS];
static int count, listener = -1, is_frozen;
static int64_t delay;
static struct sockaddr_in own, server;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static struct sockaddr_in address(const char *host, const char *port)
{
    struct sockaddr_in found = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    if (inet_pton(AF_INET, host, &found.sin_addr) != 1)
        fail(host);
    return found;
}

static void listen_again(void)
{
    if (listener >= 0)
        return;
    int on = 1;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&own, sizeof own) || listen(listener, 512))
        fail("listen");
}

static void close_connection(int at)
{
    struct connection *closed = &connections[at];
    for (int side = 0; side < 2; side++) {
        if (closed->sockets[side] >= 0)
            close(closed->sockets[side]);
        for (struct piece *piece = closed->halves[side].first, *next; piece; piece = next) {
            next = piece->next;
            free(piece);
        }
    }
    connections[at] = connections[--count];
}

static void prepare(int socket)
{
    int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void accept_all(void)
{
    while (count < CONNECTIONS) {
        int client = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (client < 0)
            return;
        prepare(client);
        connections[count++] = (struct connection){.sockets = {client, -1}};
    }
}

/* Connects to the server, which is on this machine: at once, or refused. */
static int connect_server(struct connection *connection)
{
    int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(made, (struct sockaddr *)&server, sizeof server)) {
        close(made);
        return -1;
    }
    fcntl(made, F_SETFL, O_NONBLOCK);
    prepare(made);
    connection->sockets[1] = made;
    return 0;
}

/* Takes what has come. Returns -1 if the connection is broken. */
static int take(int from, struct half *half)
{
    static char buffer[PIECE];
    ssize_t length = read(from, buffer, sizeof buffer);
    if (length < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    struct piece *piece = malloc(sizeof *piece + length);
    if (!piece)
        fail("malloc");
    *piece = (struct piece){.due = now() + delay, .length = length};
    memcpy(piece->bytes, buffer, length);
    if (half->first)
        half->last->next = piece;
    else
        half->first = piece;
    half->last = piece;
    half->waiting++;
    half->is_ended = length == 0;
    return 0;
}

/* Sends what is due. Returns -1 if the connection is broken. */
static int send_due(int to, struct half *half)
{
    struct piece *piece;
    half->is_full = 0;
    while ((piece = half->first) && piece->due <= now()) {
        if (piece->length == 0) {
            shutdown(to, SHUT_WR);
        } else {
            ssize_t sent = send(to, piece->bytes + piece->sent, piece->length - piece->sent, MSG_NOSIGNAL);
            if (sent < 0 && errno != EAGAIN)
                return -1;
            piece->sent += sent < 0 ? 0 : sent;
            if (piece->sent < piece->length) {
                half->is_full = 1;
                return 0;
            }
        }
        half->first = piece->next;
        half->waiting--;
        free(piece);
    }
    return 0;
}

static void obey(char *order)
{
    if (strncmp(order, "delay ", 6) == 0) {
        delay = strtoll(order + 6, NULL, 10);
    } else if (strcmp(order, "freeze") == 0) {
        is_frozen = 1;
    } else if (strcmp(order, "cut") == 0) {
        close(listener);
        listener = -1;
        while (count)
            close_connection(count - 1);
    } else if (strcmp(order, "mend") == 0) {
        is_frozen = 0;
        listen_again();
    } else {
        fprintf(stderr, "link: '%s' is not an order\n", order);
        exit(2);
    }
    if (write(1, "ok\n", 3) != 3)
        exit(0);
}

static void read_orders(void)
{
    static char line[256];
    static size_t length;
    ssize_t more = read(0, line + length, sizeof line - 1 - length);
    if (more <= 0)
        exit(0);
    length += more;
    for (char *end; (end = memchr(line, '\n', length)); ) {
        *end = 0;
        obey(line);
        length -= end + 1 - line;
        memmove(line, end + 1, length);
    }
}

int main(int arguments, char **argument)
{
    if (arguments != 5)
        return 2;
    own = address(argument[1], argument[2]);
    server = address(argument[3], argument[4]);
    signal(SIGPIPE, SIG_IGN);
    /* Linux lets a thread sleep 50 us too long, unless it asks for less. */
    prctl(PR_SET_TIMERSLACK, 1UL);
    listen_again();
    static struct pollfd polled[2 + 2 * CONNECTIONS];
    for (;;) {
        int64_t next = INT64_MAX;
        polled[0] = (struct pollfd){.fd = 0, .events = POLLIN};
        polled[1] = (struct pollfd){.fd = listener, .events = POLLIN};
        for (int at = 0; at < count; at++) {
            for (int side = 0; side < 2; side++) {
                struct half *in = &connections[at].halves[side], *out = &connections[at].halves[!side];
                short events = 0;
                /* Beyond this the sender waits, as it does for a full network. */
                if (!in->is_ended && in->waiting < WAITING && connections[at].sockets[1] >= 0)
                    events |= POLLIN;
                if (out->is_full)
                    events |= POLLOUT;
                else if (out->first && out->first->due < next && !is_frozen)
                    next = out->first->due;
                int asked = events && !is_frozen ? connections[at].sockets[side] : -1;
                polled[2 + 2 * at + side] = (struct pollfd){.fd = asked, .events = events};
            }
        }
        int64_t left = next - now();
        left = left < 0 ? 0 : left;
        struct timespec wait = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
        int known = count;
        if (ppoll(polled, 2 + 2 * known, next == INT64_MAX ? NULL : &wait, NULL) < 0 && errno != EINTR)
            fail("ppoll");
        if (!is_frozen) {
            /* From the last to the first: one that is closed is replaced by the last. */
            for (int at = known - 1; at >= 0; at--) {
                struct connection *connection = &connections[at];
                int is_broken = 0;
                for (int side = 0; side < 2 && !is_broken; side++) {
                    if (polled[2 + 2 * at + side].revents & (POLLIN | POLLHUP | POLLERR))
                        is_broken |= take(connection->sockets[side], &connection->halves[side]) < 0;
                    is_broken |= !is_broken && send_due(connection->sockets[!side], &connection->halves[side]) < 0;
                }
                struct half *halves = connection->halves;
                if (is_broken || (halves[0].is_ended && halves[1].is_ended && !halves[0].first && !halves[1].first))
                    close_connection(at);
            }
        }
        if (polled[1].revents)
            accept_all();
        if (polled[0].revents)
            read_orders();
        /* Those accepted just now, and those accepted while it was frozen. */
        for (int at = count - 1; at >= 0 && !is_frozen; at--)
            if (connections[at].sockets[1] < 0 && connect_server(&connections[at]))
                close_connection(at);
    }
}
