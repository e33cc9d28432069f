/** Checks that every text protocol has, in its own form: streams, headers, errors, and clients that leave. */
import { z } from "zod";
import type { JsonObject } from "../json/mod.ts";
import { type Check, Mismatch, must, shaped, show, Skip, type SuitePart } from "./check.ts";
import type { Answer, Context } from "./context.ts";
import { BAD_KEY, LONG, NO_MODEL, READY, UNKNOWN } from "./words.ts";
import { DONE, objectOf, type WireStream } from "./wire.ts";

/** What the checks need to know of a protocol. */
export interface Dialect {
  part: SuitePart;
  /** Whose error bodies it has. */
  errors: "openai" | "anthropic";
  /** The body of a request: these words from a user. */
  body(context: Context, words: string, more?: JsonObject): JsonObject;
  /** A body that lacks what the protocol requires. */
  incomplete(context: Context): JsonObject;
  /** Official members that change little and that every client may send. */
  known: JsonObject;
}

/** Body that is larger than any limit in use, in bytes. */
const LARGE_BYTES = 34 * 1024 * 1024;

const openaiError = z.object({
  error: z.object({
    message: z.string().min(1),
    type: z.string().min(1),
    param: z.string().nullable(),
    code: z.string().nullable(),
  }),
});

const anthropicError = z.object({
  type: z.literal("error"),
  error: z.object({ type: z.string().min(1), message: z.string().min(1) }),
});

/** The checks of errors, headers and behaviour under one protocol. */
export function commonChecks(dialect: Dialect): Check[] {
  const { part } = dialect;
  const make = (id: string, rest: Omit<Check, "id" | "part">): Check => ({ id: `${part}.${id}`, part, ...rest });
  return [
    make("whole.type", {
      title: "A whole answer is application/json",
      why: "SDKs choose their parser by the content type",
      run: async (context) => checkHeader(await wholeOf(dialect, context), "content-type", /^application\/json\b/),
    }),
    make("whole.request_id", {
      title: `A whole answer has the header ${idHeader(dialect)}`,
      why: "Nobody can look for a request in a log without its id",
      run: async (context) => checkHeader(await wholeOf(dialect, context), idHeader(dialect), /^\S+$/),
    }),
    make("stream.type", {
      title: "A stream is text/event-stream",
      why: "Strict clients read nothing else",
      run: async (context) =>
        checkHeader((await streamOf(dialect, context)).answer, "content-type", /^text\/event-stream\b/),
    }),
    make("stream.cache", {
      title: "A stream may not be cached",
      why: "A cache on the way would hold the events back, or give them to others",
      run: async (context) =>
        checkHeader((await streamOf(dialect, context)).answer, "cache-control", /no-cache|no-store/),
    }),
    make("stream.buffering", {
      title: "A stream tells proxies not to buffer it (x-accel-buffering: no)",
      why: "nginx and its kin hold events back otherwise",
      run: async (context) => checkHeader((await streamOf(dialect, context)).answer, "x-accel-buffering", /^no$/),
    }),
    make("stream.request_id", {
      title: `A stream has the header ${idHeader(dialect)}`,
      why: "Nobody can look for a request in a log without its id",
      run: async (context) => checkHeader((await streamOf(dialect, context)).answer, idHeader(dialect), /^\S+$/),
    }),
    make("stream.lines", {
      title: "Events are lines that strict clients read: a space after the colon, LF, one data line, a blank line",
      why: "Clients that look for 'data: ' or split at LF LF lose events otherwise",
      async run(context) {
        const { faults, events, comments } = await streamOf(dialect, context);
        must(faults.length === 0, { expected: "none of these", seen: faults.join("; ") });
        const odd = events.find(({ data }) => data.startsWith(":") || data === "");
        must(odd === undefined, { expected: "keep-alives as comments, not as data", seen: odd?.data });
        return comments.length === 0 ? undefined : `${comments.length} comments`;
      },
    }),
    ...errorChecks(dialect, make),
    make("unknown", {
      title: "A member that nobody knows does no harm",
      why: "Newer clients send more than a gateway knows",
      async run(context) {
        const answer = await context.ask({
          path: context.path(part),
          body: dialect.body(context, READY, { [UNKNOWN]: true }),
        });
        if (answer.status === 400 && answer.text.includes(UNKNOWN)) {
          throw new Skip("it is refused by name, as the vendors' own servers do; newer clients may fail");
        }
        must(answer.status === 200, { expected: "status 200", seen: `${answer.status}: ${answer.text}` });
      },
    }),
    make("known", {
      title: `Official members that need not have an effect are taken: ${Object.keys(dialect.known).join(", ")}`,
      why: "SDKs and agents send them without being asked",
      run: async (context) =>
        void await context.good({ path: context.path(part), body: dialect.body(context, READY, dialect.known) }),
    }),
    make("leave", {
      title: "After a client left in the middle of a stream, the next request is answered",
      why: "Streams that nobody reads must not keep slots, connections or locks",
      async run(context) {
        const ask = { path: context.path(part), body: dialect.body(context, LONG, { stream: true }) };
        const opened = await context.open(ask);
        must(opened.status === 200 && await opened.first(), { expected: "a stream", seen: opened.status });
        opened.leave();
        await context.good({ path: ask.path, body: dialect.body(context, READY) });
      },
    }),
  ];
}

type Make = (id: string, rest: Omit<Check, "id" | "part">) => Check;

function errorChecks(dialect: Dialect, make: Make): Check[] {
  const { part } = dialect;
  const early = (context: Context, more: JsonObject) =>
    context.once(
      `${part} no model ${JSON.stringify(more)}`,
      () =>
        context.ask({ path: context.path(part), body: { ...dialect.body(context, READY), model: NO_MODEL, ...more } }),
    );
  return [
    make("error.key", {
      title: "A wrong key is 401, in the protocol's form, and does not come back",
      why: "Clients show the key's owner what is wrong only where they can read it",
      async run(context) {
        const answer = await wrongKey(dialect, context);
        checkError(dialect, answer, [401]);
        must(!answer.text.includes(BAD_KEY), { expected: "an error without the key", seen: answer.text });
      },
    }),
    make("error.no_key", {
      title: "No key at all is 401, in the protocol's form",
      why: "Anything else is an open door, or an error that no client understands",
      run: async (context) =>
        checkError(
          dialect,
          await context.ask({ path: context.path(part), key: null, body: dialect.body(context, READY) }),
          [401],
        ),
    }),
    make("error.request_id", {
      title: `An error has the header ${idHeader(dialect)}`,
      why: "Errors are what one looks for in a log",
      run: async (context) => checkHeader(await wrongKey(dialect, context), idHeader(dialect), /^\S+$/),
    }),
    make("error.model", {
      title: "A model that does not exist is 404 (400 in responses), in the protocol's form",
      why: "Clients retry 5xx and 429; nothing is gained by retrying this",
      run: async (context) => checkError(dialect, await early(context, {}), part === "messages" ? [404] : [404, 400]),
    }),
    make("error.early", {
      title: "An error before a stream begins is a plain answer: its status, and JSON",
      why: "SDKs read no errors out of a stream that has status 200",
      async run(context) {
        const answer = await early(context, { stream: true });
        checkError(dialect, answer, part === "messages" ? [404] : [404, 400]);
        checkHeader(answer, "content-type", /^application\/json\b/);
      },
    }),
    make("error.json", {
      title: "A body that is no JSON is 400, in the protocol's form",
      why: "A crash or an empty answer would be retried",
      run: async (context) =>
        checkError(dialect, await context.ask({ path: context.path(part), body: '{"model": "' }), [400]),
    }),
    make("error.member", {
      title: "A body without what is required is 400, in the protocol's form",
      why: "422, or 500 from further in, is another class of error for every SDK",
      run: async (context) =>
        checkError(dialect, await context.ask({ path: context.path(part), body: dialect.incomplete(context) }), [400]),
    }),
    make("error.large", {
      title: `A body of ${LARGE_BYTES / 1024 / 1024} MiB is 413, in the protocol's form`,
      why: "Without a limit, anybody with a key can fill the memory",
      async run(context) {
        const answer = await context.ask({
          path: context.path(part),
          // Nobody is asked for an answer where there is no limit: the model does not exist.
          body: { ...dialect.body(context, "a".repeat(LARGE_BYTES)), model: NO_MODEL },
        });
        if ([400, 404].includes(answer.status)) throw new Skip(`no limit was met: the answer was ${answer.status}`);
        checkError(dialect, answer, [413]);
      },
    }),
    make("error.method", {
      title: "Another method is 405 and names the right one in allow",
      why: "RFC 9110 wants both",
      async run(context) {
        const answer = await context.ask({ method: "PUT", path: context.path(part), body: "{}" });
        must(answer.status === 405, { expected: "status 405", seen: answer.status });
        checkHeader(answer, "allow", /\bPOST\b/);
      },
    }),
  ];
}

/** A whole answer to a few words, asked for once. */
export function wholeOf({ part, body }: Dialect, context: Context): Promise<Answer> {
  return context.once(`${part} whole`, () => context.good({ path: context.path(part), body: body(context, READY) }));
}

/** The same, streamed. */
export function streamOf({ part, body }: Dialect, context: Context): ReturnType<Context["stream"]> {
  return context.once(
    `${part} stream`,
    () => context.stream({ path: context.path(part), body: body(context, READY, streaming(part)) }),
  );
}

/** Every event has an event line that says the type in its data. @param events the same events, by their bodies */
export function checkNames(stream: WireStream, events: readonly { type: string }[]): void {
  const named = stream.events.filter(({ data }) => data !== DONE);
  events.forEach(({ type }, index) => {
    const name = named[index]?.name;
    must(name === type, { expected: `event: ${type}`, seen: name });
  });
}

/** What asks for a stream, with its usage. */
export function streaming(part: SuitePart): JsonObject {
  return { stream: true, ...(part === "chat" && { stream_options: { include_usage: true } }) };
}

function wrongKey({ part, body }: Dialect, context: Context): Promise<Answer> {
  return context.once(
    `${part} wrong key`,
    () => context.ask({ path: context.path(part), key: BAD_KEY, body: body(context, READY) }),
  );
}

/** An error with one of these statuses, in the protocol's form. */
export function checkError({ errors }: Pick<Dialect, "errors">, { status, text }: Answer, statuses: number[]): void {
  must(statuses.includes(status), { expected: `status ${statuses.join(" or ")}`, seen: `${status}: ${text}` });
  const body = objectOf(text, "the error");
  if (errors === "openai") return void shaped(openaiError, body, "the error");
  const { error } = shaped(anthropicError, body, "the error");
  const types: Record<number, string> = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    413: "request_too_large",
  };
  must(error.type === types[status], { expected: `error.type "${types[status]}"`, seen: error.type });
}

/** A header whose value is of the form. */
export function checkHeader({ header }: Answer, name: string, form: RegExp): void {
  const value = header(name);
  if (value === null || !form.test(value)) {
    throw new Mismatch(`header ${name} like ${form.source}`, value === null ? "no such header" : show(value));
  }
}

function idHeader({ errors }: Pick<Dialect, "errors">): string {
  return errors === "openai" ? "x-request-id" : "request-id";
}
