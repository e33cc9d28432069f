/** Faults of HTTP. */
import { constants, deflateRawSync } from "node:zlib";
import { never, SOME, then, withHead } from "./broken.ts";
import type { WireFault } from "./fault.ts";
import { streamOf } from "./sound_answer.ts";
import { END, gzip, head, sendWhole, typeOf } from "./written.ts";

/** A MiB of zeros, compressed so that it can be repeated any number of times within a gzip file. */
const ZEROS = new Uint8Array(deflateRawSync(new Uint8Array(1024 ** 2), { finishFlush: constants.Z_FULL_FLUSH }));

/** Answers with an ambiguous end. */
export const FRAMING: readonly WireFault[] = [
  {
    name: "a length and chunks",
    about: "Both a length and chunks are announced",
    play: withHead(
      "HTTP/1.1 200 OK\r\ncontent-type: TYPE\r\ncontent-length: 10\r\ntransfer-encoding: chunked\r\n",
      (body) => `${new TextEncoder().encode(body).length.toString(16)}\r\n${body}\r\n${END}`,
    ),
    streamed: 502,
    whole: 502,
    overFetch: { streamed: "answer", whole: "answer" },
  },
  {
    name: "two lengths",
    about: "Two lengths that differ",
    play: withHead("HTTP/1.1 200 OK\r\ncontent-type: TYPE\r\ncontent-length: 10\r\ncontent-length: LENGTH\r\n"),
    streamed: 502,
    whole: 502,
  },
  {
    name: "a chunk of zz",
    about: "The size of a chunk is not a number",
    play: then(async (line, answer) => {
      await line.send(answer.stream ? "zz\r\nhello\r\n" : "");
      return "close";
    }),
    streamed: "error within",
    whole: 502,
  },
  {
    name: "a chunk longer than said",
    about: "A chunk does not end where it says",
    play: then(async (line, answer) => {
      if (answer.stream) await line.send(`5\r\n${answer.pieces[SOME]}\r\n`);
      return "close";
    }),
    streamed: "error within",
    whole: 502,
  },
  {
    name: "a length too long",
    about: "The body is shorter than its length",
    play: withHead("HTTP/1.1 200 OK\r\ncontent-type: TYPE\r\ncontent-length: 9999999\r\n"),
    streamed: "answer",
    whole: 502,
    of: { gemini: { streamed: "error within" } },
  },
  {
    name: "a second answer",
    about: "A second answer behind the first",
    play: async (line, answer) => {
      const write = (body: string) =>
        head(typeOf(answer), { "content-length": String(new TextEncoder().encode(body).length) }) + body;
      await line.send(
        write(answer.stream ? streamOf(answer) : answer.whole) + write(answer.whole.replaceAll("wörd", "EVIL")),
      );
      return "keep";
    },
    streamed: "answer",
    whole: "answer",
  },
  {
    name: "switching",
    about: "Status 101: another protocol",
    play: async (line) => {
      await line.send("HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n\0\0\0");
      return await never(line);
    },
    stalls: true,
    streamed: 502,
    whole: 502,
  },
  {
    name: "no HTTP",
    about: "Bytes that are not HTTP",
    play: async (line) => (await line.send("SSH-2.0-OpenSSH_9.9\r\n\r\n"), "close"),
    streamed: 502,
    whole: 502,
  },
  {
    name: "TLS",
    about: "An alert of TLS on a plain connection",
    play: async (line) => (await line.send(Uint8Array.of(0x15, 3, 3, 0, 2, 2, 80)), "close"),
    streamed: 502,
    whole: 502,
  },
  {
    name: "no length",
    about: "No length: the answer ends with the connection, which is allowed",
    play: withHead("HTTP/1.1 200 OK\r\ncontent-type: TYPE\r\n"),
    streamed: "answer",
    whole: "answer",
  },
  {
    name: "no length, half",
    about: "No length, and the connection ends in the middle",
    play: withHead("HTTP/1.1 200 OK\r\ncontent-type: TYPE\r\n", (body) => body.slice(0, body.length / 2)),
    streamed: "error within",
    whole: 502,
  },
];

/** Compressed answers to requests that did not accept compression. */
export const CODINGS: readonly WireFault[] = [
  {
    name: "gzip",
    about: "A good answer, compressed without being asked",
    play: async (line, answer) => {
      const body = await gzip(answer.stream ? streamOf(answer) : answer.whole);
      return await sendWhole(line, body, { headers: { ...typeOf(answer), "content-encoding": "gzip" } });
    },
    streamed: 502,
    whole: 502,
    overFetch: { streamed: 502, whole: 502 },
  },
  {
    name: "a bomb",
    about: "1 GiB of zeros, compressed to 1 MiB",
    play: async (line, answer) => {
      await line.send(head(typeOf(answer), { "content-encoding": "gzip", connection: "close" }));
      await line.send(Uint8Array.of(31, 139, 8, 0, 0, 0, 0, 0, 0, 3));
      for (let sent = 0; sent < 1024; sent++) await line.send(ZEROS);
      return "close";
    },
    floods: true,
    streamed: 502,
    whole: 502,
  },
  {
    name: "broken gzip",
    about: "Declared as gzip, and is not",
    play: (line, answer) =>
      sendWhole(line, answer.whole, { headers: { ...typeOf(answer), "content-encoding": "gzip" } }),
    streamed: 502,
    whole: 502,
  },
];
