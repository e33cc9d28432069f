/** Upstreams with OpenAI's images API. */
import { settlesWithin } from "../abort.ts";
import { GatewayError } from "../errors.ts";
import type { ImageCall, ImageFeed, ImageUpstream } from "../images/types.ts";
import { writeJson } from "../json/mod.ts";
import type { Secret } from "../secret.ts";
import { requestIdOf } from "./answers.ts";
import { sendFailure, statusFailure } from "./openai_images/map_errors.ts";
import { answerFeed, lateFeed, mergedFeed } from "./openai_images/feeds.ts";
import { formBytes, formType, writeForm } from "./openai_images/multipart.ts";
import { type ImageCallParameters, writeEdit, writeMembers } from "./openai_images/request.ts";
import { limitsFor } from "./prepare_attempt.ts";
import type { Outgoing, TimeLimits, Transport } from "./transport.ts";
import { imageAddressOf, type Vendor } from "./vendors.ts";

/** Options of an image upstream. */
export interface OpenaiImagesOptions {
  /** Upstream name in the configuration. */
  name: string;
  vendor: Vendor;
  baseUrl: string;
  key: Secret | undefined;
  /** `totalMs` limits the whole request. `idleMs` starts with the first bytes of an answer and does not apply to streams. */
  limits: TimeLimits;
  /** Should have no idle connections: see `TransportOptions`. */
  transport: Transport;
}

/**
 * Longest wait for the response head of a stream, in milliseconds. After that the client's stream starts, and later
 * errors are sent in it, because hosts that cannot stream send nothing for minutes.
 */
const HEAD_WAIT_MS = 5_000;

/**
 * Creates an image upstream. An error is final if the host may be making the images, so that they are not made twice.
 * Images are billed by size. From the host's usage only the tokens of uploaded images are read, if they have a price.
 */
export function createOpenaiImages(options: OpenaiImagesOptions): ImageUpstream {
  const { vendor, baseUrl, key, transport } = options;

  async function create(call: ImageCall): Promise<ImageFeed> {
    const { request, target } = call;
    const cancelled = new AbortController();
    const cancel = () => cancelled.abort();
    const signal = AbortSignal.any([call.signal, cancelled.signal]);
    const stream = request.stream && target.images?.whole !== true;
    if (request.stream && !stream && request.partialImages > 0) call.dropped.add("partial_images");
    // Streams do not say to which image a preview belongs, so each image needs its own call.
    const isSplit = target.images?.single === true || (stream && request.partialImages > 0);
    const parts = isSplit ? request.n : 1;
    const parameters = { target, stream, n: request.n / parts };
    const starts = Array.from(
      { length: parts },
      () => start(call, { parameters, signal, limits: limitsFor(call, options.limits, "image") }),
    );
    const feed = starts.length > 1 ? mergedFeed(starts, cancel) : lateFeed(firstStart(starts), cancel);
    try {
      await (request.stream ? settlesWithin(HEAD_WAIT_MS, firstStart(starts)) : firstStart(starts));
      return feed;
    } catch (error) {
      feed.cancel();
      throw error;
    }
  }

  async function start(
    { request, model, identify }: ImageCall,
    { parameters, signal, limits }: { parameters: ImageCallParameters; signal: AbortSignal; limits: TimeLimits },
  ): Promise<ImageFeed> {
    let incoming;
    try {
      incoming = await transport.send({
        url: imageAddressOf(baseUrl, request.kind),
        ...bodyOf(request, parameters),
        signal,
        limits: timesOf(limits, parameters.stream),
      });
    } catch (error) {
      throw sendFailure(error);
    }
    if (incoming.status !== 200) throw await statusFailure(incoming);
    const requestId = requestIdOf(incoming);
    if (requestId !== undefined) identify(requestId);
    const prices = [model.pricing, ...model.price_changes];
    const readsUsage = request.kind === "edit" && prices.some(({ input_image }) => input_image !== undefined);
    return answerFeed(incoming, { request, n: parameters.n, signal, readsUsage });
  }

  function bodyOf(
    request: ImageCall["request"],
    parameters: ImageCallParameters,
  ): Pick<Outgoing, "headers" | "body" | "bodyBytes"> {
    const headers = {
      accept: parameters.stream ? "text/event-stream" : "application/json",
      ...(key !== undefined && vendor.auth(key.reveal())),
    };
    if (request.kind === "generation") {
      return {
        headers: { ...headers, "content-type": "application/json" },
        body: writeJson(writeMembers(request, parameters)),
      };
    }
    // 122 random bits drawn after the upload, so an upload cannot contain the boundary.
    const boundary = `sluice-${crypto.randomUUID()}`;
    const form = writeEdit(request, parameters);
    return {
      headers: { ...headers, "content-type": formType(boundary) },
      body: writeForm(form, boundary),
      bodyBytes: formBytes(form, boundary),
    };
  }

  return { create, close: () => transport.close() };
}

/** Returns the time limits. Making an image takes minutes without any byte, so mainly the total time is limited. */
function timesOf({ connectMs, idleMs, totalMs }: TimeLimits, stream: boolean): TimeLimits {
  return { connectMs, firstByteMs: totalMs, idleMs: stream ? totalMs : idleMs, totalMs, begins: "body" };
}

/** Resolves to the first call that starts. @throws if none does: preferably a final error or an invalid request */
async function firstStart(starts: readonly Promise<ImageFeed>[]): Promise<ImageFeed> {
  try {
    return await Promise.any(starts);
  } catch (error) {
    const errors: unknown[] = error instanceof AggregateError ? error.errors : [error];
    const decides = (error: unknown) => !(error instanceof GatewayError) || error.final || error.kind === "invalid";
    throw errors.find(decides) ?? errors[0];
  }
}
