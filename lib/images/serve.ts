/** Serves image requests: body, model, validation, admission, upstream, images, charge, answer. */
import { requireCaller } from "../access/caller.ts";
import { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import type { Model } from "../catalog/model.ts";
import { pricingAt } from "../catalog/pricing.ts";
import { toGatewayError } from "../errors.ts";
import type { RouteContext } from "../server/router.ts";
import { streamHeaders } from "../server/stream_headers.ts";
import type { Delivered, Meter } from "../billing/meter.ts";
import { formatUsd } from "../billing/money.ts";
import { sheetAt } from "../billing/price.ts";
import { memberNames } from "../observe/member_names.ts";
import { loadTokenCounter } from "../o200k/mod.ts";
import { admitImages, admitReplay } from "../request/admit_images.ts";
import { beginDrain } from "../request/draining.ts";
import { droppedHeader } from "../request/dropped_header.ts";
import { findImageModel } from "../request/find_model.ts";
import { CLIENT_LEFT } from "../request/request_meter.ts";
import { NO_TOKENS } from "../store/days.ts";
import { checkModelId } from "./shared_fields.ts";
import { byteStream, pieceStream } from "./json_chunks.ts";
import { countPixels } from "./pixel_limits.ts";
import { readEdit } from "./read_edit.ts";
import { readForm } from "./read_form.ts";
import { readGeneration } from "./read_generation.ts";
import { readIdempotencyKey } from "./idempotency_key.ts";
import { hashRequest } from "./request_hash.ts";
import { type MeteredImages, runMetered } from "./run_metered.ts";
import { writeResult } from "./write_result.ts";
import { sizeText } from "./size.ts";
import { type RequestWatch, startImages, watchRequest } from "./start_images.ts";
import { streamImages } from "./stream_images.ts";
import { type FinishedImage, type ImageBill, ImageUsageCounter } from "./image_usage.ts";
import { billedExtras, billedTokens, mostUsage } from "./image_pricing.ts";
import type { ImageFeed, ImageRequest } from "./types.ts";

/** `POST /v1/images/generations`. */
export function generateImages(request: Request, context: RouteContext): Promise<Response> {
  return runMetered(request, { context, endpoint: "images.generations" }, async (under) => {
    const { value: body } = await context.readJson();
    const model = findImageModel(checkModelId(body.model), context);
    const wanted = { ...readGeneration(body, defaultsOf(context)), model: model.id };
    return await answer(request, { context, model, wanted, under });
  });
}

/** `POST /v1/images/edits`. */
export function editImages(request: Request, context: RouteContext): Promise<Response> {
  return runMetered(
    request,
    { context, endpoint: "images.edits" },
    async (under) => await answer(request, { ...await readEditJob(request, context), under }),
  );
}

/** Base64 bytes per pixel of an uncompressed RGB image: 3 * 4 / 3. */
const BYTES_OF_PIXEL = 4;

/** Never aborts, because a charged answer is delivered. */
const NEVER = new AbortController().signal;

/** A function of its own, so that the form's files can be freed: the request has copies. */
async function readEditJob(request: Request, context: RouteContext): Promise<Omit<Job, "under">> {
  const form = await readForm(request, context);
  const model = findImageModel(checkModelId(form.get("model") ?? undefined), context);
  return { context, model, wanted: { ...await readEdit(form, defaultsOf(context)), model: model.id } };
}

function defaultsOf({ gateway: { config } }: RouteContext): { quality: string | undefined } {
  return { quality: config.images.default_quality };
}

/** A request that may be answered. */
interface Job {
  context: RouteContext;
  model: Model;
  wanted: ImageRequest;
  under: MeteredImages;
}

/** A request that is being answered. */
interface Running extends Job {
  feed: ImageFeed;
  /** Headers that name the model and upstream. */
  headers: Record<string, string>;
  tally: ImageUsageCounter;
  dropped: UnsupportedParameters;
  watch: RequestWatch;
  /** Price per token of uploaded images; absent: they are free. */
  inputImagePrice: string | undefined;
  /** Called when the client leaves; true if its images are still made. */
  drains: () => boolean;
  /** Releases the request's pixels. May be called at any time and more than once. */
  leave: () => void;
}

/** Answers a request, or repeats the stored answer of its Idempotency-Key. */
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
      // The work continues after this client leaves if another client waits for the same answer.
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
  if (own) return await give(body, { status, headers }, job);
  await admitReplay({ meter, model, context });
  await meter.deliver({ status, ending: "done", tokens: NO_TOKENS, source: "none" });
  return await give(body, { status, headers: { ...headers, "x-sluice-cost": "0" } }, job);
}

/** Sends an answer that is in memory. It counts against the pixel limit but is never refused. */
async function give(
  body: Uint8Array<ArrayBuffer>,
  head: { status: number; headers: Record<string, string> },
  { context: { gateway, timers }, model }: Job,
): Promise<Response> {
  const pixels = Math.ceil(body.length / BYTES_OF_PIXEL);
  const ended = isLocal(model, gateway) ? await gateway.pixels.enter(NEVER, pixels).catch(() => () => {}) : () => {};
  return new Response(pieceStream(body, { unreadMs: gateway.config.limits.answer_unread_ms, timers, ended }), head);
}

/** True if a target makes images in this process. */
function isLocal({ targets }: Model, { imageUpstreams }: RouteContext["gateway"]): boolean {
  return targets.some(({ upstream }) => imageUpstreams.get(upstream)?.isLocal);
}

/** Ends the meter without a charge when the work fails. The signal aborts when no client waits. */
async function charged(
  meter: Meter,
  { signal, work }: { signal: AbortSignal; work: () => Promise<Response> },
): Promise<Response> {
  try {
    return await work();
  } catch (thrown) {
    await meter.fail(signal.aborted ? CLIENT_LEFT : toGatewayError(thrown).status);
    throw thrown;
  }
}

async function make(job: Job, client: AbortSignal): Promise<Response> {
  const { context, model, wanted, under: { meter, interrupted } } = job;
  const { gateway } = context;
  const drains = drainOf(job);
  const watch = watchRequest({
    client,
    drains,
    interrupted,
    totalMs: gateway.config.images.total_ms,
  });
  let leave = () => {};
  try {
    const pixels = isLocal(model, gateway) ? countPixels(wanted, gateway.config) : undefined;
    const counter = await loadTokenCounter();
    const promptTokens = await counter.countLong(wanted.prompt);
    const now = gateway.now();
    const { input_image: inputImagePrice } = pricingAt(model, now);
    const counting = { promptTokens, chargesInputImages: wanted.kind === "edit" && inputImagePrice !== undefined };
    const most = mostUsage(wanted, counting);
    await admitImages({ ...most, extras: billedExtras(most, inputImagePrice) }, { meter, model, context, now });
    if (pixels !== undefined) leave = await gateway.pixels.enter(watch.signal, pixels);
    const tally = new ImageUsageCounter(wanted, counting);
    const dropped = new UnsupportedParameters();
    const suited = withoutPngQuality(wanted, dropped);
    const { feed, headers } = await startImages({
      gateway,
      requestId: context.requestId,
      key: requireCaller(context.caller).keyId,
      request: suited,
      model,
      dropped,
      signal: watch.signal,
      hasLeft: () => client.aborted,
      meter,
    });
    context.record.dropped = memberNames(dropped.names);
    const running: Running = { ...job, feed, headers, tally, dropped, watch, drains, inputImagePrice, leave };
    const response = wanted.stream ? await streamed(running) : await whole(running, () => client.aborted);
    watch.answered();
    return response;
  } catch (error) {
    leave();
    watch.stop();
    throw error;
  }
}

/** Returns a function that decides whether work continues after the client left: an image has no cost before it exists. */
function drainOf({ context, model, under: { meter } }: Job): () => boolean {
  const factor = requireCaller(context.caller).group.price_factor;
  const sheet = sheetAt(model, { factor, now: context.gateway.now() });
  let drains = false;
  return () => drains ||= beginDrain({ model, sheet, isCountable: () => false, meter }, context);
}

/** PNG is lossless, so `output_compression` has no meaning. */
function withoutPngQuality(wanted: ImageRequest, dropped: UnsupportedParameters): ImageRequest {
  const { compression, ...rest } = wanted;
  if (wanted.format !== "png" || compression === undefined) return wanted;
  if (compression < 100) dropped.add("output_compression");
  return rest;
}

async function whole(running: Running, hasLeft: () => boolean): Promise<Response> {
  const { context: { gateway }, wanted, feed, tally, dropped, watch, leave } = running;
  const images = await collect(feed, tally);
  watch.stop();
  const created = Math.floor(gateway.now() / 1000);
  // Charged before the first byte goes out.
  const cost = await charge(running, hasLeft() ? { status: CLIENT_LEFT, ending: "abandoned" } : {});
  const { usage, sizes } = tally.bill;
  const text = writeResult({ request: wanted, created, images, usage });
  return new Response(
    byteStream(text, {
      unreadMs: gateway.config.limits.answer_unread_ms,
      timers: running.context.timers,
      ended: leave,
    }),
    {
      headers: {
        ...running.headers,
        "x-sluice-image-size": sizesText(sizes),
        ...Object.fromEntries(droppedHeader(dropped)),
        "content-type": "application/json",
        "x-sluice-cost": cost,
      },
    },
  );
}

/** Collects the images. If the request fails early, the delivered ones are the answer. */
async function collect(feed: ImageFeed, tally: ImageUsageCounter): Promise<FinishedImage[]> {
  const images: FinishedImage[] = [];
  try {
    for (let event = await feed.read(); event !== undefined; event = await feed.read()) {
      if (event.type === "failed") tally.fail(event.error);
      const delivered = event.type === "image" ? tally.deliver(event) : undefined;
      if (delivered !== undefined) images.push(delivered.image);
    }
  } catch (thrown) {
    if (tally.count === 0) throw thrown;
    tally.fail(toGatewayError(thrown));
  } finally {
    feed.cancel();
  }
  if (tally.count === 0) throw tally.failure;
  return images.sort((a, b) => a.index - b.index);
}

/** Charges the delivered images. Resolves to the cost in USD. */
async function charge(
  running: Running,
  end: Partial<Pick<Delivered, "status" | "ending">> = {},
): Promise<string> {
  const { context: { gateway, record }, wanted, tally, under: { meter } } = running;
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
      ...chargeable(tally.bill, running),
    }),
  );
}

/** Charges a client that left for the images it received; nothing if the gateway ended the stream. */
async function chargeLeft(running: Running, got: ImageBill): Promise<void> {
  const { meter, interrupted } = running.under;
  if (interrupted.aborted) return await meter.fail(200);
  if (got.sizes.length === 0) return await meter.fail(CLIENT_LEFT);
  await meter.deliver({ status: 200, ending: "abandoned", ...chargeable(got, running) });
}

/** Returns the charge for images. Logs when an upstream delivered another size than requested. */
function chargeable(
  { usage, sizes }: ImageBill,
  { context: { gateway, requestId }, model, wanted, headers, inputImagePrice, under: { meter } }: Running,
): Pick<Delivered, "tokens" | "source" | "images" | "details"> {
  const asked = sizeText(wanted.size);
  // A stream charges again at its end, without effect; log only the first time.
  if (!meter.ended && sizes.some((size) => size !== asked)) {
    gateway.log({
      level: "warn",
      event: "image_size_differs",
      request_id: requestId,
      upstream: headers["x-sluice-upstream"],
      model: model.id,
      asked,
      delivered: sizes.join(", "),
    });
  }
  const extras = billedExtras(usage, inputImagePrice);
  return {
    tokens: billedTokens(usage),
    source: "formula",
    images: sizes.length,
    details: { image_sizes: { asked, delivered: sizes }, ...(extras.length > 0 && { extras }) },
  };
}

async function streamed(running: Running): Promise<Response> {
  const { context: { gateway }, wanted, feed, tally, dropped, watch, drains, leave } = running;
  const body = await streamImages({
    feed: {
      read: () => feed.read(),
      cancel() {
        watch.stop();
        feed.cancel();
        leave();
      },
    },
    request: wanted,
    tally,
    seconds: () => Math.floor(gateway.now() / 1000),
    keepAliveMs: gateway.config.keep_alive_seconds * 1000,
    unreadMs: gateway.config.limits.answer_unread_ms,
    timers: running.context.timers,
    charge: (hasLeft) => charge(running, hasLeft ? { ending: "abandoned" } : {}),
    left: (got) => gateway.backgroundTasks.add(chargeLeft(running, got)),
    drains,
  });
  return new Response(body, {
    headers: streamHeaders({ ...running.headers, ...Object.fromEntries(droppedHeader(dropped)) }),
  });
}

/** The common size of all images, or a list of sizes in order. The answer's `size` member is the requested one. */
function sizesText(sizes: readonly string[]): string {
  return new Set(sizes).size === 1 ? sizes[0] ?? "" : sizes.join(", ");
}
