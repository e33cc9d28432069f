/** Types of the image pipeline: requests, upstreams and their events. */
import type { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import type { Model, Target } from "../catalog/model.ts";
import type { GatewayError } from "../errors.ts";
import type { JsonObject } from "../json/mod.ts";

/** Output formats. */
export const IMAGE_FORMATS = ["png", "jpeg", "webp"] as const;

/** Output format. */
export type ImageFormat = typeof IMAGE_FORMATS[number];

/** Width and height in pixels. */
export interface Size {
  width: number;
  height: number;
}

/** An uploaded image; only its header is decoded. */
export interface InputImage extends Size {
  bytes: Uint8Array<ArrayBuffer>;
  type: ImageFormat;
  /** EXIF orientation, 1 to 8. `width` and `height` are those of the displayed image. */
  orientation: number;
}

/** A validated generation or edit. */
export interface ImageRequest {
  kind: "generation" | "edit";
  /** Public model id. */
  model: string;
  prompt: string;
  /** As sent, or the operator's default. Does not affect the price. */
  quality: string;
  n: number;
  /** As sent, for the answer: `auto` or `<width>x<height>`. */
  requestedSize: string;
  size: Size;
  format: ImageFormat;
  /** Quality of jpeg and webp, 0 to 100. */
  compression?: number;
  background: "opaque" | "auto";
  stream: boolean;
  /** Previews per image, 0 to 3. */
  partialImages: number;
  /** Images to edit; empty for a generation. */
  images: InputImage[];
  mask?: InputImage;
  user?: string;
  /** Unknown members, passed to upstreams of the same API. */
  rest: JsonObject;
}

/** Events of an image upstream; images may interleave. */
export type ImageEvent =
  /** A preview: `step` counts from 0 within its image. */
  | { type: "partial"; index: number; step: number; base64: string }
  /** A finished image, and the tokens of uploaded images reported since the last event. */
  | { type: "image"; index: number; base64: string; inputImageTokens?: number }
  /** This image failed; others may follow. */
  | { type: "failed"; index: number; error: GatewayError };

/** Events of one request, read on demand. */
export interface ImageFeed {
  /** Returns the next event; `undefined` after the last. @throws {GatewayError} if the whole request fails */
  read(): Promise<ImageEvent | undefined>;
  /** Cancels the work. May be called at any time and more than once. */
  cancel(): void;
}

/** A call to an image upstream. */
export interface ImageCall {
  request: ImageRequest;
  model: Model;
  target: Target;
  /** Aborts when the client disconnects or the time limit is over. */
  signal: AbortSignal;
  dropped: UnsupportedParameters;
  /** Takes the upstream's id of a request that it answers. Of several requests for one call, the last id counts. */
  identify: (requestId: string) => void;
}

/** A source of images. */
export interface ImageUpstream {
  /** True if images are made in this process and take its memory. */
  readonly isLocal?: boolean;
  /** Starts the work. @throws {GatewayError} if it cannot start */
  create(call: ImageCall): Promise<ImageFeed>;
  close(): void;
}
