/** What the image pipeline is made of: a request, an upstream that makes images, and what it says while it does. */
import type { Dropped } from "../protocols/canonical/dropped.ts";
import type { Model, Target } from "../catalog/model.ts";
import type { GatewayError } from "../errors.ts";
import type { JsonObject } from "../json/json.ts";

/** Forms an image can be answered in. */
export const IMAGE_FORMATS = ["png", "jpeg", "webp"] as const;

/** Form of an image. */
export type ImageFormat = typeof IMAGE_FORMATS[number];

/** Width and height in pixels. */
export interface Size {
  width: number;
  height: number;
}

/** An image the client uploaded. Its header was read, its pixels were not. */
export interface InputImage extends Size {
  bytes: Uint8Array<ArrayBuffer>;
  type: ImageFormat;
  /** EXIF orientation, 1 to 8; `width` and `height` are as the viewer sees them. */
  orientation: number;
}

/** A request for images, generated or edited, checked. */
export interface ImageRequest {
  kind: "generation" | "edit";
  /** Public model id. */
  model: string;
  prompt: string;
  /** As sent, or the operator's default; it does not change the price. */
  quality: string;
  /** How many images. */
  n: number;
  /** As sent, for the echo: `auto` or `<width>x<height>`. */
  requestedSize: string;
  /** The size to make. */
  size: Size;
  format: ImageFormat;
  /** Quality of jpeg and webp, 0 to 100. */
  compression?: number;
  background: "opaque" | "auto";
  stream: boolean;
  /** Previews wanted before each finished image, 0 to 3. */
  partialImages: number;
  /** Images to edit; empty for a generation. */
  images: InputImage[];
  mask?: InputImage;
  user?: string;
  /** Members and fields nobody here reads, for upstreams that might. */
  rest: JsonObject;
}

/** What an image upstream says, in any order among images. */
export type ImageEvent =
  /** A preview: `step` counts from 0 within its image. */
  | { type: "partial"; index: number; step: number; base64: string }
  /** A finished image, and the tokens of uploaded images that its answer reports beyond those reported before. */
  | { type: "image"; index: number; base64: string; inputImageTokens?: number }
  /** This image will not come; the others may. */
  | { type: "failed"; index: number; error: GatewayError };

/** Events of one request, pulled by the reader. */
export interface ImageFeed {
  /** The next event; `undefined` after the last. @throws {GatewayError} where the whole request fails */
  read(): Promise<ImageEvent | undefined>;
  /** Ends the work early. Safe at any time, more than once. */
  cancel(): void;
}

/** One call of an image upstream. */
export interface ImageCall {
  request: ImageRequest;
  model: Model;
  target: Target;
  /** Aborted when the client has gone or the time is up. */
  signal: AbortSignal;
  dropped: Dropped;
}

/** A source of images. */
export interface ImageUpstream {
  /** True where the images are made in this process, which takes its memory. */
  readonly isLocal?: boolean;
  /** Starts the work. @throws {GatewayError} where it cannot even start */
  create(call: ImageCall): Promise<ImageFeed>;
  close(): void;
}
