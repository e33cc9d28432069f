/** Shows the result of a request of the playground. */
import type { VNode } from "preact";
import { explainRequest } from "../billing/reports/explain.ts";
import type { Gateway } from "../gateway.ts";
import type { JsonObject } from "../json/mod.ts";
import { inputTokensOf } from "../store/ledger.ts";
import { codeFor } from "./client_code.ts";
import { CopyableBlock } from "./copy.tsx";
import { Cards, Count, Duration, Usd } from "./format.tsx";
import { CONSOLE } from "./html.tsx";
import type { PlaygroundAnswer } from "./playground_answer.ts";
import type { PlaygroundEndpoint } from "./playground_request.ts";
import { showTranslation } from "./playground_translation.ts";

/** A request, and its answer if it was sent. */
export interface PlaygroundResult {
  endpoint: PlaygroundEndpoint;
  model: string;
  /** Body of the request, including its model. */
  body: JsonObject;
  /** URL of the gateway for clients. */
  origin: string;
  /** The answer; absent: the request was not sent. */
  sent?: { answer: PlaygroundAnswer; status: number; requestId: string };
}

/** Makes the panel of a request: its answer, cost and times, the body for the upstream, and code for clients. */
export async function resultPanel(result: PlaygroundResult, gateway: Gateway): Promise<VNode> {
  const { endpoint, model, body, origin, sent } = result;
  return (
    <section aria-label={model}>
      <h2>{model}</h2>
      {sent !== undefined && <Answer answer={sent.answer} />}
      {sent !== undefined && await facts(sent, gateway)}
      <Translation translation={showTranslation(endpoint, { gateway, model, body })} />
      {codeFor(endpoint, { origin, body }).map(({ name, text }) => (
        <details>
          <summary>{name}</summary>
          <CopyableBlock text={text} label={`code: ${name}`} />
        </details>
      ))}
      {sent !== undefined && sent.answer.raw !== "" && (
        <details>
          <summary>Answer as it arrived</summary>
          <pre tabIndex={0}>{sent.answer.raw}</pre>
        </details>
      )}
    </section>
  );
}

function Answer({ answer: { text, calls, images, problem } }: { answer: PlaygroundAnswer }): VNode {
  return (
    <>
      {problem !== undefined && <p class="notice bad" role="alert">{problem}</p>}
      {text !== "" && <pre class="answer" tabIndex={0}>{text}</pre>}
      {calls.map(({ name, arguments: input }) => <pre tabIndex={0}>{`${name}(${input})`}</pre>)}
      {images.map((address, index) => <img src={address} alt={`Image ${index + 1} of the answer`} />)}
    </>
  );
}

/** Shows cost, times and tokens from the ledger, which has the entry of a request before its answer ends. */
async function facts(
  { status, requestId }: { status: number; requestId: string },
  { store: { ledger }, ledger: queue }: Gateway,
): Promise<VNode> {
  // Refused requests are entered only after their answer.
  await queue.flush().catch(() => {});
  const request = await explainRequest(ledger, requestId);
  const link = <a href={`${CONSOLE}/requests/${requestId}`}>{`…${requestId.slice(-8)}`}</a>;
  if (request?.state !== "ended") return <Cards cards={[["Status", status], ["Request", link]]} />;
  const { tokens } = request;
  return (
    <Cards
      cards={[
        ["Status", status],
        ["Cost", <Usd usd={request.charged_usd} />],
        ["First token", <Duration ms={request.first_ms} />],
        ["Duration", <Duration ms={request.total_ms} />],
        ["Input tokens", <Count value={inputTokensOf(tokens)} />],
        ["Output tokens", <Count value={tokens.completion} />],
        ["Upstream", request.upstream ?? "–"],
        ["Dropped", request.dropped.join(", ") || "nothing"],
        ["Request", link],
      ]}
    />
  );
}

function Translation(
  { translation: { note, body, dropped } }: { translation: ReturnType<typeof showTranslation> },
): VNode {
  return (
    <details>
      <summary>What the upstream gets</summary>
      <p>{note}</p>
      {body !== undefined && <CopyableBlock text={JSON.stringify(body, null, 2)} label="body for the upstream" />}
      {dropped.length > 0 && <p class="notice warn">{`Dropped: ${dropped.join(", ")}`}</p>}
    </details>
  );
}
