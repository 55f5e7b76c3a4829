"""A client of another library: publishes what it reads, or prints the messages of a queue."""

import base64
import json
import sys

import pika

command, url, queue = sys.argv[1:]
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
