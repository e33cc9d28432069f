/** The values that the steps of an image request share. */
import type { Model } from "../catalog/model.ts";
import type { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import type { MeteredWork } from "../request/request_meter.ts";
import type { RouteContext } from "../server/router.ts";
import type { ImageUsageCounter } from "./image_usage.ts";
import type { RequestWatch } from "./start_images.ts";
import type { ImageFeed, ImageRequest } from "./types.ts";

/** A validated request with its model and its meter. */
export interface ImageWork {
  context: RouteContext;
  model: Model;
  request: ImageRequest;
  metered: MeteredWork;
}

/** A request whose upstream has started. */
export interface StartedImages extends ImageWork {
  feed: ImageFeed;
  /** Headers that name the model and upstream. */
  headers: Record<string, string>;
  counter: ImageUsageCounter;
  dropped: UnsupportedParameters;
  watch: RequestWatch;
  /** Price per token of uploaded images; undefined if they are free. */
  inputImagePrice: string | undefined;
  /** Returns true once the client has disconnected, even if its images are still made. */
  hasDisconnected: () => boolean;
  /** Called when the client disconnects. Returns true if its images are still made. */
  drains: () => boolean;
  /** Releases the request's pixels. May be called at any time and repeatedly. */
  releasePixels: () => void;
}
