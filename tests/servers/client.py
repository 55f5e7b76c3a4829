"""A client of another library: publishes what it reads, or what others do not; or prints the messages of a queue."""

import base64
import json
import sys
import threading

import pika

command, url, queue = sys.argv[1:4]
connection = pika.BlockingConnection(pika.URLParameters(url))
channel = connection.channel()

if command == "publish":
    # In transactions, each answered once the queue has it all: a channel that closes can lose what a quorum queue has yet to take.
    channel.tx_select()
    # Each line: message id, tab, body.
    for number, line in enumerate(sys.stdin, 1):
        message_id, body = line.rstrip("\n").split("\t")
        properties = pika.BasicProperties(message_id=message_id, delivery_mode=2, headers={"shop": "grüße", "n": 7})
        channel.basic_publish("", queue, body.encode(), properties)
        if number % 500 == 0:
            channel.tx_commit()
    channel.tx_commit()
elif command == "nest":
    # One message with a header of lists in lists, which takes a recursion to write.
    def nest(message_id, depth):
        value = True
        for _ in range(depth):
            value = [value]
        properties = pika.BasicProperties(message_id=message_id, delivery_mode=2, headers={"deep": value, "flat": 7})
        channel.basic_publish("", queue, b"{}", properties)

    sys.setrecursionlimit(1_000_000)
    threading.stack_size(512 * 1024 * 1024)
    thread = threading.Thread(target=nest, args=(sys.argv[4], int(sys.argv[5])))
    thread.start()
    thread.join()
elif command == "take":
    while True:
        method, properties, body = channel.basic_get(queue, auto_ack=True)
        if method is None:
            break
        letter = {
            "message_id": properties.message_id,
            "headers": properties.headers,
            "body": base64.b16encode(body).decode(),
        }
        print(json.dumps(letter, default=str))
connection.close()
