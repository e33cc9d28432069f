/** Serves image requests from start to end. The steps have the numbers of docs/explanation/architecture.md. */
import type { Model } from "../catalog/model.ts";
import { GatewayError } from "../errors.ts";
import { attributeUser, runMetered } from "../request/request_meter.ts";
import { findModel } from "../request/candidates.ts";
import { bodyLimits } from "../server/body.ts";
import type { RouteContext } from "../server/router.ts";
import type { MeteredEndpoint } from "../store/ledger.ts";
import { admitAndStart } from "./admit_and_start.ts";
import { answerOnce } from "./answer_once.ts";
import { readMultipart } from "./multipart.ts";
import { readEdit } from "./read_edit.ts";
import { readGeneration } from "./read_generation.ts";
import { checkModelId } from "./shared_fields.ts";
import type { ImageRequest } from "./types.ts";
import { streamedResponse, wholeResponse } from "./write_response.ts";

interface ReadRequest {
  model: Model;
  request: ImageRequest;
}

/** Answers `POST /v1/images/generations`. */
export function generateImages(client: Request, context: RouteContext): Promise<Response> {
  return serveImages(client, { context, endpoint: "images.generations", read: readGenerationRequest });
}

/** Answers `POST /v1/images/edits`. */
export function editImages(client: Request, context: RouteContext): Promise<Response> {
  return serveImages(client, { context, endpoint: "images.edits", read: readEditRequest });
}

function serveImages(
  client: Request,
  { context, endpoint, read }: {
    context: RouteContext;
    endpoint: MeteredEndpoint;
    read: (client: Request, context: RouteContext) => Promise<ReadRequest>;
  },
): Promise<Response> {
  // 1. The app has matched the route and authenticated the key. From here on the request is metered.
  return runMetered(client, { context, endpoint }, async (metered) => {
    // 2, 4. Read and validate the body, and find the model.
    const work = { context, metered, ...await read(client, context) };
    attributeUser(metered.meter.entry, work.request);
    // A repeat with the same Idempotency-Key gets the first answer and skips the steps below.
    return await answerOnce(client, work, async (signal) => {
      // 6, 7, 8. Take limits, budget and memory, and start at the first target that accepts the request.
      const started = await admitAndStart(work, signal);
      try {
        // 10, 11, 12. Collect or stream the images, charge the delivered ones, and write them.
        const response = work.request.stream ? await streamedResponse(started) : await wholeResponse(started);
        started.watch.answered();
        return response;
      } catch (error) {
        started.releasePixels();
        started.watch.stop();
        throw error instanceof GatewayError ? error.withHeaders(started.headers) : error;
      }
    });
  });
}

async function readGenerationRequest(_client: Request, context: RouteContext): Promise<ReadRequest> {
  const { value: body } = await context.readJson();
  const model = findModel(checkModelId(body.model), context, "image");
  return { model, request: { ...readGeneration(body, defaultsOf(context)), model: model.id } };
}

/** Longest text field of an edit, in bytes. The longest prompt takes 125 KiB. */
const MAX_TEXT_BYTES = 256 * 1024;

async function readEditRequest(client: Request, context: RouteContext): Promise<ReadRequest> {
  const { gateway, caller, body } = context;
  const { uploads } = gateway.config.images;
  // The bytes count against the memory for request bodies until the request has ended.
  const form = await readMultipart(client, {
    fileBytes: uploads.max_file_bytes,
    totalBytes: uploads.max_upload_bytes,
    parts: uploads.max_parts,
    textBytes: MAX_TEXT_BYTES,
    pace: bodyLimits(gateway.config),
    gate: gateway.uploads,
    keyId: caller?.keyId,
    take: (bytes) => body.reserve(bytes),
  });
  body.arrived();
  const model = findModel(checkModelId(form.get("model") ?? undefined), context, "image");
  return { model, request: { ...await readEdit(form, defaultsOf(context)), model: model.id } };
}

function defaultsOf({ gateway: { config } }: RouteContext): { quality: string | undefined } {
  return { quality: config.images.default_quality };
}
