/** The faults that can be asked for: what they are called, what they do, and how they are read out of a text. */

/** One kind of fault. */
export interface FaultKind {
  /** As it is asked for. */
  example: string;
  /** What happens, in a few words. */
  about: string;
  /** What stands behind the first colon; absent: nothing. */
  takes?: "status" | "time" | "size";
  /** True: it can happen after so many pieces of text, as in `cut-after:5`. */
  after?: true;
  /** True: it takes sockets. The embedded model has it not. */
  wire?: true;
}

/** Every kind, in the order of the documentation. */
export const FAULTS = {
  "status": {
    example: "status:429",
    about: "An error with this status; `retry-after:3` beside it is told",
    takes: "status",
  },
  "stall": {
    example: "stall:30s",
    about: "Silence before the answer; without a time for ever",
    takes: "time",
    after: true,
  },
  "slow": { example: "slow:200ms", about: "So much time before each piece of text", takes: "time" },
  "cut": { example: "cut-after:5", about: "The connection ends before its time", after: true },
  "error": {
    example: "error-after:5",
    about: "An error in place of the next event; without `-after` status 500",
    after: true,
  },
  "garbage": { example: "garbage", about: "An event, or an answer, that is no JSON", after: true },
  "half-event": { example: "half-event-after:2", about: "The answer ends in good order within an event", after: true },
  "no-end": { example: "no-end", about: "All of the text, but no end of the answer" },
  "no-usage": { example: "no-usage", about: "No word about tokens" },
  "wrong-usage": { example: "wrong-usage", about: "Numbers of tokens that cannot be" },
  "endless": { example: "endless", about: "Text without end, as fast as it is read" },
  "long-line": { example: "long-line:2mb", about: "One piece of text of this size", takes: "size" },
  "refuse": { example: "refuse", about: "No answer at all: the connection is closed as soon as the request is read" },
  "reset": {
    example: "reset-after:2",
    about: "As `cut`, with a byte of the request left unread, for which the system resets the connection",
    after: true,
    wire: true,
  },
  "drip": { example: "drip:1s", about: "One byte at a time, and so much time before each", takes: "time", wire: true },
  "split": { example: "split", about: "Every byte in a chunk of its own: harmless", wire: true },
  "crlf": { example: "crlf", about: "Lines that end with CR LF: harmless", wire: true },
  "bom": { example: "bom", about: "A byte order mark before the answer: harmless", wire: true },
  "wrong-type": { example: "wrong-type", about: "A page of HTML with status 200", wire: true },
  "redirect": { example: "redirect", about: "Status 307, to this server itself", wire: true },
  "huge-headers": { example: "huge-headers:2mb", about: "A header of this size", takes: "size", wire: true },
  "gzip-bomb": {
    example: "gzip-bomb:1gb",
    about: "So many zeros, compressed although nobody asked",
    takes: "size",
    wire: true,
  },
  "bad-chunk": { example: "bad-chunk", about: "A chunk whose length is no number", wire: true },
  "junk": { example: "junk", about: "Bytes that are no HTTP", wire: true },
} as const satisfies Record<string, FaultKind>;

/** A kind's name. */
export type FaultName = keyof typeof FAULTS;

/** A fault that was asked for. */
export interface Fault {
  name: FaultName;
  /** Pieces of text that come before it; absent: it is there from the beginning, before the head of the answer. */
  after?: number;
  status?: number;
  /** What a status tells about the time of the next try, in seconds. */
  retryAfter?: number;
  /** Absent: for ever. */
  ms?: number;
  bytes?: number;
}

/** Where faults are asked for: inside the gateway there are no sockets. */
export type Place = "embedded" | "wire";

/** Words of a model's id that ask for a fault: `fault-status-429`, also behind a vendor's name. */
const MODEL_PREFIX = /^(?:.*\/)?fault-/;

/** Size of what is long where no size is named, in bytes, and times where none is named, in milliseconds. */
const USUAL_BYTES = 2 * 1024 ** 2;
const USUAL_MS: Partial<Record<FaultName, number>> = { slow: 200, drip: 1_000 };

/** The first fault that a text asks for; `undefined` where it asks for none. A fault stands between white space. */
export function findFault(text: string, place: Place): Fault | undefined {
  const words = text.split(/[\s"'`,;]+/);
  for (const word of words) {
    const fault = readFault(word, place);
    if (fault === undefined) continue;
    const told = words.map((other) => /^retry-after:(\d{1,6})$/.exec(other)?.[1]).find((value) => value !== undefined);
    return told === undefined ? fault : { ...fault, retryAfter: Number(told) };
  }
  return undefined;
}

/** The fault that a model's id asks for, with `-` in place of each `:`. */
export function faultOfModel(model: string, place: Place): Fault | undefined {
  if (!MODEL_PREFIX.test(model)) return undefined;
  const word = model.replace(MODEL_PREFIX, "");
  const name = names().find((name) => word === name || word.startsWith(`${name}-`));
  if (name === undefined) return undefined;
  const late = word.startsWith(`${name}-after-`) ? "-after" : "";
  const args = word.slice(name.length + late.length).split("-").slice(1);
  return readFault([name + late, ...args].join(":"), place);
}

/** Reads one word such as `stall-after:5:30s`; `undefined` where it is none. */
export function readFault(word: string, place: Place): Fault | undefined {
  const [typed = "", ...args] = word.split(":");
  const late = typed.endsWith("-after");
  const name = late ? typed.slice(0, -"-after".length) : typed;
  if (!isFault(name)) return undefined;
  const kind: FaultKind = FAULTS[name];
  if ((kind.wire === true && place === "embedded") || (late && kind.after !== true)) return undefined;
  const after = late ? readCount(args.shift()) : undefined;
  if (late && after === undefined) return undefined;
  const rest = readArgument(name, { kind, text: args.shift() });
  if (rest === undefined || args.length > 0) return undefined;
  return { name, ...(after !== undefined && { after }), ...rest };
}

/** Longer names first: `no-usage` is not `no`. */
function names(): FaultName[] {
  return (Object.keys(FAULTS) as FaultName[]).sort((a, b) => b.length - a.length);
}

function isFault(text: string): text is FaultName {
  return Object.hasOwn(FAULTS, text);
}

function readArgument(
  name: FaultName,
  { kind: { takes }, text }: { kind: FaultKind; text: string | undefined },
): Partial<Fault> | undefined {
  switch (takes) {
    case undefined:
      return text === undefined ? {} : undefined;
    case "status": {
      const status = /^[2-5]\d\d$/.test(text ?? "") ? Number(text) : undefined;
      return status === undefined ? undefined : { status };
    }
    case "time": {
      if (text === undefined) return USUAL_MS[name] === undefined ? {} : { ms: USUAL_MS[name] };
      const ms = readAmount(text, { ms: 1, s: 1_000, m: 60_000 });
      return ms === undefined ? undefined : { ms };
    }
    case "size": {
      const bytes = text === undefined
        ? USUAL_BYTES
        : readAmount(text, { b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 });
      return bytes === undefined ? undefined : { bytes };
    }
  }
}

function readCount(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,6}$/.test(text) ? Number(text) : undefined;
}

function readAmount(text: string, units: Readonly<Record<string, number>>): number | undefined {
  const [, count = "", unit = ""] = /^(\d{1,6})([a-z]+)$/.exec(text) ?? [];
  const size = units[unit];
  return size === undefined ? undefined : Number(count) * size;
}
