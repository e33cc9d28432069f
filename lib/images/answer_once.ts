/** Answers requests with an Idempotency-Key: the work is done once, and repeats of the request get the same answer. */
import { requireCaller } from "../access/permissions.ts";
import type { Meter } from "../billing/meter.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import { admitReplay } from "./admit_images.ts";
import { makesImagesHere } from "./admit_and_start.ts";
import { failDisconnected, reasonOf } from "../request/request_meter.ts";
import { NO_TOKENS } from "../store/days.ts";
import type { ImageWork } from "./image_work.ts";
import { pieceStream } from "../server/watched_stream.ts";
import { isObject, type Json, writeJson } from "../json/mod.ts";
import type { ImageRequest, InputImage } from "./types.ts";

/** Base64 bytes per pixel of an uncompressed RGB image: 3 * 4 / 3. */
const BYTES_PER_PIXEL = 4;

/** A signal that never aborts: an answer that was charged is always sent. */
const NEVER_ABORTED = new AbortController().signal;

/** Makes the answer to a request. The signal aborts when no client waits for the answer any more. */
type MakeAnswer = (client: AbortSignal) => Promise<Response>;

/** Answers a request, or repeats the stored answer for its Idempotency-Key. Without a key it only calls `make`. */
export async function answerOnce(client: Request, work: ImageWork, make: MakeAnswer): Promise<Response> {
  const { context, model, request, metered: { meter, handOver } } = work;
  const { gateway, caller } = context;
  const key = readIdempotencyKey(client.headers, request);
  if (key === undefined) return await make(client.signal);
  let didWork = false;
  let admitting: Promise<void> | undefined;
  const admit = () => admitting ??= admitReplay({ meter, model, context });
  const { status, headers, body } = await gateway.idempotency.run({
    scope: `${requireCaller(caller).keyId} ${request.kind}`,
    key,
    requestHash: await hashRequest(request),
    requestId: context.requestId,
    signal: client.signal,
    reserve: async (bytes) => {
      await admit();
      context.body.reserveAnswer(bytes);
    },
    work: async (signal) => {
      // The work continues after this client disconnects if another client waits for the same answer.
      didWork = true;
      handOver();
      const response = await makeOrSettle(meter, { signal, make });
      return {
        status: response.status,
        headers: Object.fromEntries(response.headers),
        body: new Uint8Array(await response.arrayBuffer()),
      };
    },
  });
  if (didWork) return await sendStored(body, { status, headers }, work);
  await admit();
  await meter.deliver({ status, ending: "done", tokens: NO_TOKENS, source: "none" });
  return await sendStored(body, { status, headers: { ...headers, "x-sluice-cost": "0" } }, work);
}

/** Printable ASCII, as in any header. */
const KEY = /^[ -~]{1,255}$/;

/**
 * Reads the key; `undefined` without the header. A stream cannot be replayed, so a request for a stream with a key is
 * refused.
 * @throws {GatewayError} `invalid`
 */
export function readIdempotencyKey(headers: Headers, { stream }: { stream: boolean }): string | undefined {
  const key = headers.get("idempotency-key");
  if (key === null) return undefined;
  if (!KEY.test(key)) {
    throw new GatewayError("invalid", "Cannot use this Idempotency-Key: expected 1 to 255 printable ASCII characters");
  }
  if (stream) {
    throw new GatewayError("invalid", "Cannot use an Idempotency-Key with stream: omit one of them", {
      param: "stream",
    });
  }
  return key;
}

/** Sends an answer that is in memory. It counts against the pixel limit, but is never refused. */
async function sendStored(
  bytes: Uint8Array<ArrayBuffer>,
  head: { status: number; headers: Record<string, string> },
  { context: { gateway, timers, caller, body }, model }: ImageWork,
): Promise<Response> {
  const work = { size: Math.ceil(bytes.length / BYTES_PER_PIXEL), keyId: requireCaller(caller).keyId };
  const ended = makesImagesHere(model, gateway)
    ? await gateway.pixels.enter(NEVER_ABORTED, work).catch(() => () => {})
    : () => {};
  body.holdAnswer(bytes.length);
  return new Response(
    pieceStream(bytes, { unreadMs: gateway.config.resource_limits.answer_unread_ms, timers, ended }),
    head,
  );
}

/** Makes an answer. If that fails, ends the meter without a charge. @throws the error of `make` */
async function makeOrSettle(
  meter: Meter,
  { signal, make }: { signal: AbortSignal; make: MakeAnswer },
): Promise<Response> {
  try {
    return await make(signal);
  } catch (thrown) {
    const error = toGatewayError(thrown);
    if (signal.aborted) await failDisconnected(meter);
    else await meter.fail(error.status, reasonOf(error));
    throw thrown;
  }
}

/**
 * Returns the SHA-256 of a request in hexadecimal. Boundaries, file names and the order of members do not affect it.
 */
export async function hashRequest({ images, mask, rest, ...request }: ImageRequest): Promise<string> {
  const canonical: Json = [
    sortMembers({ ...request, size: { ...request.size } }),
    sortMembers(rest),
    await Promise.all(images.map(hashImage)),
    mask === undefined ? null : await hashImage(mask),
  ];
  return await hashBytes(Uint8Array.from(new TextEncoder().encode(writeJson(canonical))));
}

function hashImage({ bytes }: InputImage): Promise<string> {
  return hashBytes(bytes);
}

async function hashBytes(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function sortMembers(value: Json): Json {
  if (Array.isArray(value)) return value.map(sortMembers);
  if (!isObject(value)) return value;
  const names = Object.keys(value).filter((name) => value[name] !== undefined).sort();
  return Object.fromEntries(names.map((name) => [name, sortMembers(value[name] ?? null)]));
}
