/** The page of the playground, where an operator sends requests with a client's key and sees their answers and cost. */
import type { VNode } from "preact";
import { renderToString } from "preact-render-to-string";
import type { ConsoleSession } from "../access/console_session.ts";
import type { Caller } from "../access/permissions.ts";
import { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import type { RouteContext } from "../server/router.ts";
import { SseReader } from "../server/sse.ts";
import { clientOrigin } from "./client_origin.ts";
import { type Page, queryOf, runForm, SECURITY_HEADERS, showPage } from "./html.tsx";
import { PlaygroundAnswer } from "./playground_answer.ts";
import { PlaygroundForm, readChoices } from "./playground_form.tsx";
import { type PlaygroundResult, resultPanel } from "./playground_panel.tsx";
import { isText, type PlaygroundRequest, readFields, readPlaygroundRequest } from "./playground_request.ts";
import { findCaller, sendFromPlayground } from "./playground_send.ts";

/** Media type of JSON lines (https://github.com/ndjson/ndjson-spec). */
const JSON_LINES = "application/x-ndjson";

/** Reports new text of an answer. `side` is the index of its model among those that are compared. */
type Progress = (side: number, text: string) => void;

interface SendOptions {
  context: RouteContext;
  submitted: PlaygroundRequest;
  caller: Caller;
  origin: string;
  signal: AbortSignal;
  /** Undefined: the answer is not streamed. */
  progress: Progress | undefined;
}

/** `GET /admin/console/playground`. The query may contain values for the fields of the form. */
export function playgroundPage(request: Request, context: RouteContext): Promise<Response> {
  return showPage(context, (session) => pageOf(context, { session, values: queryOf(request), results: [] }));
}

/** `POST /admin/console/playground`: responds with the page, or with JSON lines for its script. */
export function sendFromForm(request: Request, context: RouteContext): Promise<Response> {
  return runForm(request, context, async (values, session) => {
    const { gateway } = context;
    const submitted = readPlaygroundRequest(readFields(values));
    const origin = clientOrigin(request, gateway.config);
    const isSent = values.get("action") !== "show";
    const caller = isSent ? await findCaller(gateway, submitted.key) : undefined;
    const { signal } = request;
    const start = (progress?: Progress) =>
      submitted.models.map((_, side) =>
        caller === undefined
          ? Promise.resolve(unsent(submitted, { side, origin }))
          : send(side, { context, submitted, caller, origin, signal, progress })
      );
    if (request.headers.get("accept") === JSON_LINES) return streamResults(start, gateway);
    const results = await Promise.all(start());
    const panels = await Promise.all(results.map((result) => resultPanel(result, gateway)));
    return await pageOf(context, { session, values, results: panels });
  });
}

async function pageOf(
  { gateway }: RouteContext,
  { session, values, results }: { session: ConsoleSession; values: URLSearchParams; results: readonly VNode[] },
): Promise<Page> {
  return {
    title: "Playground",
    scripts: ["copy.js", "playground.js"],
    hasImages: true,
    body: (
      <>
        <PlaygroundForm session={session} fields={readFields(values)} choices={await readChoices(gateway)} />
        <div id="results" class="sides" aria-live="polite">{results}</div>
      </>
    ),
  };
}

function unsent(
  { endpoint, models, body }: PlaygroundRequest,
  { side, origin }: { side: number; origin: string },
): PlaygroundResult {
  const model = models[side] ?? "";
  return { endpoint, model, origin, body: { model, ...body } };
}

async function send(
  side: number,
  { context, submitted, caller, origin, signal, progress }: SendOptions,
): Promise<PlaygroundResult> {
  const { endpoint } = submitted;
  const result = unsent(submitted, { side, origin });
  const isStream = progress !== undefined && isText(endpoint);
  const body = isStream ? { ...result.body, stream: true } : result.body;
  const response = await sendFromPlayground(caller, { context, endpoint, body, signal });
  const answer = new PlaygroundAnswer(endpoint);
  try {
    if (!isStream || response.body === null || !isEvents(response)) answer.addBody(await response.text());
    else for await (const text of textsOf(response.body, answer)) progress(side, text);
  } catch (error) {
    if (signal.aborted) throw error;
    // The answer was cut off. If the gateway sent an error event before, that is the problem to show.
    answer.problem ??= "The answer broke off";
  }
  const requestId = response.headers.get("x-request-id") ?? "";
  return { ...result, sent: { answer, status: response.status, requestId } };
}

function isEvents({ headers }: Response): boolean {
  return headers.get("content-type")?.startsWith("text/event-stream") === true;
}

/** Yields the text that each chunk of a stream adds; an empty text for chunks without any, such as keep-alives. */
async function* textsOf(body: ReadableStream<Uint8Array>, answer: PlaygroundAnswer): AsyncGenerator<string> {
  const events = new SseReader();
  const decoder = new TextDecoder();
  for await (const chunk of body) {
    yield answer.addFrames(events.push(decoder.decode(chunk, { stream: true })));
  }
  yield answer.addFrames("end");
}

/**
 * Returns a response with JSON lines for the page's script: `text` is added to the answer of a side; `html` finally
 * replaces it with the whole result.
 */
function streamResults(start: (progress: Progress) => Promise<PlaygroundResult>[], gateway: Gateway): Response {
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      const write = (line: { side: number; text: string } | { side: number; html: string }) =>
        controller.enqueue(encoder.encode(`${JSON.stringify(line)}\n`));
      try {
        await Promise.all(
          start((side, text) => write({ side, text })).map(async (sending, side) => {
            write({ side, html: renderToString(await resultPanel(await sending, gateway)) });
          }),
        );
        controller.close();
      } catch (error) {
        controller.error(
          error instanceof GatewayError ? error : new Error("The request was aborted", { cause: error }),
        );
      }
    },
  });
  return new Response(body, { headers: { ...SECURITY_HEADERS, "content-type": JSON_LINES } });
}
