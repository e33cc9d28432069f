/** The types of image requests, and of the upstreams that make images. */
import type { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import type { Model, Target } from "../catalog/model.ts";
import type { GatewayError } from "../errors.ts";
import type { JsonObject } from "../json/mod.ts";

/** All output formats. */
export const IMAGE_FORMATS = ["png", "jpeg", "webp"] as const;

/** Output format. */
export type ImageFormat = typeof IMAGE_FORMATS[number];

/** Width and height in pixels. */
export interface Size {
  width: number;
  height: number;
}

/** An uploaded image. Only its header was decoded. */
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
  /** Quality that the client sent, or the operator's default. It does not affect the price. */
  quality: string;
  n: number;
  /** Size that the client sent, which the answer repeats: `auto` or `<width>x<height>`. */
  requestedSize: string;
  /** Size of the images to make. */
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
  /** Unknown members, which are passed on to upstreams of the same API. */
  rest: JsonObject;
}

/** An event of an image upstream. Events of several images may interleave. */
export type ImageEvent =
  /** A preview. `step` counts the previews of an image from 0. */
  | { type: "partial"; index: number; step: number; base64: string }
  /** A finished image, and the tokens of uploaded images that were reported since the last event. */
  | { type: "image"; index: number; base64: string; inputImageTokens?: number }
  /** An image failed. Others may follow. */
  | { type: "failed"; index: number; error: GatewayError };

/** The events of one request, produced as they are read. */
export interface ImageFeed {
  /** Returns the next event; `undefined` after the last. @throws {GatewayError} if the whole request fails */
  read(): Promise<ImageEvent | undefined>;
  /** Cancels the work. May be called at any time and repeatedly. */
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
  /** Called with the upstream's id of a request that it answers. If a call has several requests, the last id counts. */
  identify: (requestId: string) => void;
}

/** A source of images. */
export interface ImageUpstream {
  /** True if images are made in this process and take its memory. */
  readonly isLocal?: boolean;
  /** Starts the work. @throws {GatewayError} if it cannot start */
  create(call: ImageCall): Promise<ImageFeed>;
  /** Frees connections and workers. */
  close(): void;
}
