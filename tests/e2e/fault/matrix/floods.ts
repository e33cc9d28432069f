/** Faults that are a matter of size. */
import { half } from "./broken.ts";
import type { WireFault } from "./fault.ts";
import { begin, chunk, head, sendMany, typeOf } from "./written.ts";

const GIB = 1024 ** 3;

/** Far more than there should be. */
export const FLOODS: readonly WireFault[] = [
  {
    name: "a line of 1 GiB",
    about: "One line of 1 GiB, in chunks",
    play: async (line, answer) => {
      await line.send(begin(answer));
      await chunk(line, answer.stream ? 'data: {"text":"' : '{"text":"');
      await sendMany(line, "x", GIB, true);
      return "close";
    },
    floods: true,
    streamed: 502,
    whole: 502,
  },
  {
    name: "a length of 1 GiB",
    about: "A body of 1 GiB with its length",
    play: async (line, answer) => {
      await line.send(head(typeOf(answer), { "content-length": String(GIB) }));
      await sendMany(line, "x", GIB);
      return "close";
    },
    floods: true,
    streamed: 502,
    whole: 502,
  },
  {
    name: "an event of short lines",
    about: "An event of 1 GiB in lines of 15 bytes, in the middle (a whole answer: blank lines)",
    play: async (line, answer) => {
      if (answer.stream) await half(line, answer);
      else await line.send(begin(answer));
      await sendMany(line, answer.stream ? "data: 89012345\n" : "\n", GIB, true);
      return "close";
    },
    floods: true,
    streamed: "error within",
    whole: 502,
  },
  {
    name: "text without end",
    about:
      "Good events without end, 64 KiB every 5 ms: what the client gets is in memory, too (a whole answer: letters)",
    play: async (line, answer) => {
      if (answer.stream) await half(line, answer);
      else await line.send(begin(answer));
      for (;;) {
        await line.wait(5);
        await sendMany(line, answer.stream ? answer.pieces[0] ?? "" : "x", 1, true);
      }
    },
    floods: true,
    stalls: true,
    streamed: "error within",
    whole: [502, 504],
  },
  {
    name: "comments without end",
    about: "Comments without end, as fast as they are taken (a whole answer: spaces)",
    play: async (line, answer) => {
      await line.send(begin(answer));
      await sendMany(line, answer.stream ? ": wait\n\n" : " ", Infinity, true);
      return "close";
    },
    floods: true,
    stalls: true,
    streamed: 504,
    whole: [502, 504],
  },
  {
    name: "a header of 1 GiB",
    about: "One header of 1 GiB",
    play: async (line) => {
      await line.send("HTTP/1.1 200 OK\r\nx-long: ");
      await sendMany(line, "x", GIB);
      return "close";
    },
    floods: true,
    streamed: 502,
    whole: 502,
  },
  {
    name: "headers without end",
    about: "Headers of 20 bytes without end",
    play: async (line) => {
      await line.send("HTTP/1.1 200 OK\r\n");
      await sendMany(line, "x-header-1: 1234567\r\n", Infinity);
      return "close";
    },
    floods: true,
    streamed: 502,
    whole: 502,
  },
  {
    name: "interim answers without end",
    about: "100 Continue, again and again",
    play: async (line) => {
      await sendMany(line, "HTTP/1.1 100 Continue\r\n\r\n", Infinity);
      return "close";
    },
    floods: true,
    stalls: true,
    streamed: 502,
    whole: 502,
    overFetch: { streamed: 504, whole: 504 },
  },
];
