/** The table of faults, and how a request asks for one: by a word in its prompt or by its model id. */

/** One kind of fault. */
export interface FaultKind {
  example: string;
  /** Its effect, in a few words. */
  about: string;
  /** Kind of the argument after the colon; absent: it takes none. */
  takes?: "status" | "time" | "size";
  /** True if it can happen after a number of text pieces, as in `cut-after:5`. */
  after?: true;
  /** True if it needs a socket, so that the embedded model does not support it. */
  wire?: true;
}

/** Every kind, in documented order. */
export const FAULTS = {
  "status": {
    example: "status:429",
    about: "An error with this status; `retry-after:3` beside it is sent along",
    takes: "status",
  },
  "stall": {
    example: "stall:30s",
    about: "Silence before the answer; without a time it never ends",
    takes: "time",
    after: true,
  },
  "slow": { example: "slow:200ms", about: "A pause before each piece of text", takes: "time" },
  "cut": { example: "cut-after:5", about: "The connection ends too early", after: true },
  "error": {
    example: "error-after:5",
    about: "An error in place of the next event; without `-after` status 500",
    after: true,
  },
  "garbage": { example: "garbage", about: "An event, or an answer, that is not JSON", after: true },
  "half-event": {
    example: "half-event-after:2",
    about: "The answer ends in the middle of an event, without an error of the connection",
    after: true,
  },
  "no-end": { example: "no-end", about: "All of the text, but not the event that ends the answer" },
  "no-usage": { example: "no-usage", about: "No token counts" },
  "wrong-usage": { example: "wrong-usage", about: "Impossible token counts" },
  "endless": { example: "endless", about: "Endless text, as fast as it is read" },
  "long-line": { example: "long-line:2mb", about: "One piece of text of this size", takes: "size" },
  "refuse": { example: "refuse", about: "No answer: the connection is closed as soon as the request is read" },
  "reset": { example: "reset-after:2", about: "Like `cut`, but with a TCP reset", after: true, wire: true },
  "drip": { example: "drip:1s", about: "One byte at a time, with a pause before each", takes: "time", wire: true },
  "split": { example: "split", about: "Every byte in its own chunk; clients must not notice", wire: true },
  "crlf": { example: "crlf", about: "Lines that end with CR LF; clients must not notice", wire: true },
  "bom": { example: "bom", about: "A byte order mark before the answer; clients must not notice", wire: true },
  "wrong-type": { example: "wrong-type", about: "An HTML page with status 200", wire: true },
  "redirect": { example: "redirect", about: "Status 307, to this server itself", wire: true },
  "huge-headers": { example: "huge-headers:2mb", about: "A header of this size", takes: "size", wire: true },
  "gzip-bomb": {
    example: "gzip-bomb:1gb",
    about: "This many zeros, compressed although the client did not accept it",
    takes: "size",
    wire: true,
  },
  "bad-chunk": { example: "bad-chunk", about: "A chunk whose length is not a number", wire: true },
  "junk": { example: "junk", about: "Bytes that are not HTTP", wire: true },
} as const satisfies Record<string, FaultKind>;

/** Name of a fault. */
export type FaultName = keyof typeof FAULTS;

/** A requested fault with its arguments. */
export interface RequestedFault {
  name: FaultName;
  /** Number of text pieces before it; absent: it happens before the head of the answer. */
  after?: number;
  /** HTTP status of the answer. */
  status?: number;
  /** Value of the `retry-after` header of a status, in seconds. */
  retryAfter?: number;
  /** A time in milliseconds; absent from a stall that never ends. */
  ms?: number;
  /** A size in bytes. */
  bytes?: number;
}

/** Producer of a fault: the embedded model, which has no sockets, or the fault server. */
export type FaultScope = "embedded" | "wire";

/** Prefix of model ids that ask for a fault, such as `acme/fault-status-429`. */
const MODEL_PREFIX = /^(?:.*\/)?fault-/;

/** Sizes (in bytes) and times (in milliseconds) of faults that are requested without one. */
const DEFAULT_BYTES = 2 * 1024 ** 2;
const DEFAULT_MS: Partial<Record<FaultName, number>> = { slow: 200, drip: 1_000 };

/** Returns the first fault requested in a text; `undefined` for none. A fault must be a word of its own. */
export function findFault(text: string, scope: FaultScope): RequestedFault | undefined {
  const words = text.split(/[\s"'`,;]+/);
  for (const word of words) {
    const fault = readFault(word, scope);
    if (fault === undefined) continue;
    const [retryAfter] = words.flatMap((other) => /^retry-after:(\d{1,6})$/.exec(other)?.[1] ?? []);
    return retryAfter === undefined ? fault : { ...fault, retryAfter: Number(retryAfter) };
  }
  return undefined;
}

/** Returns the fault requested by a model id, which has `-` in place of each `:`; `undefined` for none. */
export function faultOfModel(model: string, scope: FaultScope): RequestedFault | undefined {
  if (!MODEL_PREFIX.test(model)) return undefined;
  const word = model.replace(MODEL_PREFIX, "");
  const name = namesByLength().find((name) => word === name || word.startsWith(`${name}-`));
  if (name === undefined) return undefined;
  const suffix = word.startsWith(`${name}-after-`) ? "-after" : "";
  const args = word.slice(name.length + suffix.length).split("-").slice(1);
  return readFault([name + suffix, ...args].join(":"), scope);
}

/** Parses one word such as `stall-after:5:30s`; `undefined` if it is not a fault that this scope supports. */
export function readFault(word: string, scope: FaultScope): RequestedFault | undefined {
  const [label = "", ...args] = word.split(":");
  const hasCount = label.endsWith("-after");
  const name = hasCount ? label.slice(0, -"-after".length) : label;
  if (!isFault(name)) return undefined;
  const kind: FaultKind = FAULTS[name];
  if ((kind.wire === true && scope === "embedded") || (hasCount && kind.after !== true)) return undefined;
  const after = hasCount ? readCount(args.shift()) : undefined;
  if (hasCount && after === undefined) return undefined;
  const argument = readArgument(name, { kind, text: args.shift() });
  if (argument === undefined || args.length > 0) return undefined;
  return { name, ...(after !== undefined && { after }), ...argument };
}

/** Returns the names, longest first, so that a name is never taken for a shorter one at its beginning. */
function namesByLength(): FaultName[] {
  return (Object.keys(FAULTS) as FaultName[]).sort((a, b) => b.length - a.length);
}

function isFault(text: string): text is FaultName {
  return Object.hasOwn(FAULTS, text);
}

/** Reads the argument of a fault, or its default; `undefined` if the text is not a valid argument. */
function readArgument(
  name: FaultName,
  { kind: { takes }, text }: { kind: FaultKind; text: string | undefined },
): Partial<RequestedFault> | undefined {
  switch (takes) {
    case undefined:
      return text === undefined ? {} : undefined;
    case "status": {
      const status = /^[2-5]\d\d$/.test(text ?? "") ? Number(text) : undefined;
      return status === undefined ? undefined : { status };
    }
    case "time": {
      if (text === undefined) return DEFAULT_MS[name] === undefined ? {} : { ms: DEFAULT_MS[name] };
      const ms = readAmount(text, { ms: 1, s: 1_000, m: 60_000 });
      return ms === undefined ? undefined : { ms };
    }
    case "size": {
      if (text === undefined) return { bytes: DEFAULT_BYTES };
      const bytes = readAmount(text, { b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 });
      return bytes === undefined ? undefined : { bytes };
    }
  }
}

function readCount(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,6}$/.test(text) ? Number(text) : undefined;
}

/** Reads a number with a unit, such as `30s`, and converts it to the base unit; `undefined` if the text is not one. */
function readAmount(text: string, units: Readonly<Record<string, number>>): number | undefined {
  const [, count = "", unit = ""] = /^(\d{1,6})([a-z]+)$/.exec(text) ?? [];
  const size = units[unit];
  return size === undefined ? undefined : Number(count) * size;
}
