/** The image pipeline, read from top to bottom: body, model, request, limits and budgets, upstream, pictures, charge, answer. */
import { requireCaller } from "../access/caller.ts";
import { Dropped } from "../canonical/dropped.ts";
import type { Model } from "../catalog/model.ts";
import { toGatewayError } from "../errors.ts";
import type { RouteContext } from "../http/router.ts";
import { streamHeaders } from "../http/stream_headers.ts";
import type { Delivered, Meter } from "../metering/meter.ts";
import { formatUsd } from "../metering/money.ts";
import { memberNames } from "../observe/member_names.ts";
import { loadTokenCounter } from "../metering/tokens.ts";
import { admitImages, admitReplay } from "../pipeline/admission.ts";
import { droppedHeader } from "../pipeline/dropped_header.ts";
import { findImageModel } from "../pipeline/find_model.ts";
import { LEFT, type Metered, metered } from "../pipeline/metered.ts";
import { NO_TOKENS } from "../store/days.ts";
import { checkModelId } from "./members.ts";
import { byteStream } from "./pieces.ts";
import { readEdit } from "./edit.ts";
import { readForm } from "./form.ts";
import { readGeneration } from "./generation.ts";
import { readIdempotencyKey } from "./idempotency_key.ts";
import { hashRequest } from "./request_hash.ts";
import { writeResult } from "./result.ts";
import { sizeText } from "./size.ts";
import { startImages, type Watch, watchRequest } from "./start.ts";
import { type Got, streamImages } from "./stream.ts";
import { type Picture, Tally } from "./tally.ts";
import { billedTokens, mostUsage } from "./tariff.ts";
import type { ImageFeed, ImageRequest } from "./types.ts";

/** `POST /v1/images/generations`. */
export function generateImages(request: Request, context: RouteContext): Promise<Response> {
  return metered(request, { context, endpoint: "images.generations" }, async (under) => {
    const { value: body } = await context.readJson();
    const model = findImageModel(checkModelId(body.model), context);
    const wanted = readGeneration(body, defaultsOf(context));
    return await answer(request, { context, model, wanted, under });
  });
}

/** `POST /v1/images/edits`. */
export function editImages(request: Request, context: RouteContext): Promise<Response> {
  return metered(
    request,
    { context, endpoint: "images.edits" },
    async (under) => await answer(request, { ...await readEditJob(request, context), under }),
  );
}

/** The signal of a client that is not watched. */
const STAYS = new AbortController().signal;

/** On its own, so that the form's files are free when the work begins: the request has its own copy of them. */
async function readEditJob(request: Request, context: RouteContext): Promise<Omit<Job, "under">> {
  const form = await readForm(request, context);
  const model = findImageModel(checkModelId(form.get("model") ?? undefined), context);
  return { context, model, wanted: await readEdit(form, defaultsOf(context)) };
}

function defaultsOf({ gateway: { config } }: RouteContext): { quality: string | undefined } {
  return { quality: config.images.default_quality };
}

/** A request that may be answered. */
interface Job {
  context: RouteContext;
  model: Model;
  wanted: ImageRequest;
  under: Metered;
}

/** A request that is being answered. */
interface Running extends Job {
  feed: ImageFeed;
  /** What tells the client who makes the pictures. */
  headers: Record<string, string>;
  tally: Tally;
  dropped: Dropped;
  watch: Watch;
}

/** Answers a request, or gives the answer once more where the client names a request that was answered. */
async function answer(request: Request, job: Job): Promise<Response> {
  const { context, model, wanted, under: { meter, handOver } } = job;
  const { gateway, caller } = context;
  const key = readIdempotencyKey(request.headers, wanted);
  if (key === undefined) return await make(job, request.signal);
  let own = false;
  const { status, headers, body } = await gateway.idempotency.run({
    scope: `${requireCaller(caller).keyId} ${wanted.kind}`,
    key,
    requestHash: await hashRequest(wanted),
    requestId: context.requestId,
    signal: request.signal,
    work: async (signal) => {
      // It goes on when this client leaves and another one waits for the same.
      own = true;
      handOver();
      const response = await charged(meter, { signal, work: () => make(job, signal) });
      return {
        status: response.status,
        headers: Object.fromEntries(response.headers),
        body: new Uint8Array(await response.arrayBuffer()),
      };
    },
  });
  if (own) return new Response(body, { status, headers });
  await admitReplay({ meter, model, context });
  await meter.deliver({ status, ending: "done", tokens: NO_TOKENS, source: "none" });
  return new Response(body, { status, headers: { ...headers, "x-sluice-cost": "0" } });
}

/** Work that fails ends its meter without a charge. Its signal is aborted when nobody waits for it any more. */
async function charged(
  meter: Meter,
  { signal, work }: { signal: AbortSignal; work: () => Promise<Response> },
): Promise<Response> {
  try {
    return await work();
  } catch (thrown) {
    await meter.fail(signal.aborted ? LEFT : toGatewayError(thrown).status);
    throw thrown;
  }
}

async function make(job: Job, client: AbortSignal): Promise<Response> {
  const { context, model, wanted, under: { meter, interrupted } } = job;
  const { gateway } = context;
  const watch = watchRequest({
    client: model.on_disconnect === "drain" ? STAYS : client,
    interrupted,
    totalMs: gateway.config.images.total_ms,
  });
  try {
    const counter = await loadTokenCounter();
    const promptTokens = await counter.countLong(wanted.prompt);
    await admitImages(mostUsage(wanted, promptTokens), { meter, model, context });
    const tally = new Tally(wanted, promptTokens);
    const dropped = new Dropped();
    const suited = withoutPngQuality(wanted, dropped);
    const { feed, headers } = await startImages({
      gateway,
      requestId: context.requestId,
      request: suited,
      model,
      dropped,
      signal: watch.signal,
      meter,
    });
    context.record.dropped = memberNames(dropped.names);
    const running: Running = { ...job, feed, headers, tally, dropped, watch };
    const response = wanted.stream ? await streamed(running) : await whole(running, () => client.aborted);
    watch.answered();
    return response;
  } catch (error) {
    watch.stop();
    throw error;
  }
}

/** PNG loses nothing, so that there is no quality to choose. */
function withoutPngQuality(wanted: ImageRequest, dropped: Dropped): ImageRequest {
  const { compression, ...rest } = wanted;
  if (wanted.format !== "png" || compression === undefined) return wanted;
  if (compression < 100) dropped.add("output_compression");
  return rest;
}

async function whole(running: Running, hasLeft: () => boolean): Promise<Response> {
  const { context: { gateway }, wanted, feed, tally, dropped, watch } = running;
  const pictures = await collect(feed, tally);
  watch.stop();
  const created = Math.floor(gateway.now() / 1000);
  // Entered before the first byte goes out.
  const cost = await charge(running, hasLeft() ? { status: LEFT, ending: "abandoned" } : {});
  return new Response(byteStream(writeResult({ request: wanted, created, pictures, usage: tally.usage })), {
    headers: {
      ...running.headers,
      ...headersOf(tally.size, dropped),
      "content-type": "application/json",
      "x-sluice-cost": cost,
    },
  });
}

/** Waits for the pictures. Where the request ends early, those that have come are its answer. */
async function collect(feed: ImageFeed, tally: Tally): Promise<Picture[]> {
  const pictures: Picture[] = [];
  try {
    for (let event = await feed.read(); event !== undefined; event = await feed.read()) {
      if (event.type === "failed") tally.fail(event.error);
      const delivered = event.type === "image" ? tally.deliver(event) : undefined;
      if (delivered !== undefined) pictures.push(delivered.picture);
    }
  } catch (thrown) {
    if (tally.count === 0) throw thrown;
    tally.fail(toGatewayError(thrown));
  } finally {
    feed.cancel();
  }
  if (tally.count === 0) throw tally.failure;
  return pictures.sort((a, b) => a.index - b.index);
}

/** Charges what has come; nothing where nothing has. Gives the cost in USD. */
async function charge(
  { context: { gateway, record }, wanted, tally, under: { meter } }: Running,
  end: Partial<Pick<Delivered, "status" | "ending">> = {},
): Promise<string> {
  if (tally.count === 0) {
    gateway.observer.failed(record, tally.failure);
    await meter.fail(200);
    return "0";
  }
  return formatUsd(
    await meter.deliver({
      status: 200,
      ending: tally.count < wanted.n ? "partial" : "done",
      ...end,
      tokens: billedTokens(tally.usage),
      source: "formula",
      images: tally.count,
    }),
  );
}

/** Charges a client that left for what it got; nothing where it was the gateway that ended the stream. */
async function chargeLeft({ meter, interrupted }: Metered, { usage, pictures }: Got): Promise<void> {
  if (interrupted.aborted) return await meter.fail(200);
  if (pictures === 0) return await meter.fail(LEFT);
  await meter.deliver({
    status: 200,
    ending: "abandoned",
    tokens: billedTokens(usage),
    source: "formula",
    images: pictures,
  });
}

async function streamed(running: Running): Promise<Response> {
  const { context: { gateway }, model, wanted, feed, tally, dropped, watch, under } = running;
  const body = await streamImages({
    feed: {
      read: () => feed.read(),
      cancel() {
        watch.stop();
        feed.cancel();
      },
    },
    request: wanted,
    tally,
    seconds: () => Math.floor(gateway.now() / 1000),
    keepAliveMs: gateway.config.keep_alive_seconds * 1000,
    unreadMs: gateway.config.limits.answer_unread_ms,
    charge: (hasLeft) => charge(running, hasLeft ? { ending: "abandoned" } : {}),
    left: (got) => gateway.afterwork.add(chargeLeft(under, got)),
    drain: model.on_disconnect === "drain",
  });
  return new Response(body, {
    headers: streamHeaders({ ...running.headers, ...headersOf(sizeText(wanted.size), dropped) }),
  });
}

/** The size that was made, which the answer's `size` need not tell, and what was not passed on. */
function headersOf(size: string, dropped: Dropped): Record<string, string> {
  return { "x-sluice-image-size": size, ...Object.fromEntries(droppedHeader(dropped)) };
}
