/**
 * X, the minimal proxy that all figures are compared with: a straightforward gateway on Deno, with `Deno.serve` and
 * `fetch`. It parses JSON and encodes it again, and parses events and writes them again with web streams. Under
 * `/cross` it translates chat into messages in the simplest way. No keys, no limits, no ledger, no log. Arguments:
 * port, upstream.
 */
const [port = "0", upstream = ""] = Deno.args;

interface ChatRequest {
  model: string;
  stream?: boolean;
  max_tokens: number;
  temperature: number;
  messages: ChatMessage[];
  tools?: { function: { name: string; description: string; parameters: unknown } }[];
}

interface ChatMessage {
  role: string;
  content: string | null | { type: string; text?: string; image_url?: { url: string } }[];
  tool_calls?: { id: string; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
}

interface Answer {
  id: string;
  model: string;
  content: { text: string }[];
  usage: { input_tokens: number; output_tokens: number };
}

interface StreamEvent {
  type?: string;
  model?: string;
  delta?: { text?: string };
}

function toMessages({ model, stream, max_tokens, temperature, messages, tools }: ChatRequest): unknown {
  const system = messages.filter((message) => message.role === "system").map((message) => message.content);
  return {
    model,
    max_tokens,
    temperature,
    ...(stream && { stream }),
    system: system.join("\n"),
    messages: messages.filter((message) => message.role !== "system").map(toTurn),
    tools: tools?.map(({ function: { name, description, parameters } }) => ({
      name,
      description,
      input_schema: parameters,
    })),
  };
}

function toTurn({ role, content, tool_calls, tool_call_id }: ChatMessage): unknown {
  if (role === "tool") return { role: "user", content: [{ type: "tool_result", tool_use_id: tool_call_id, content }] };
  if (tool_calls === undefined) return { role, content: typeof content === "string" ? content : content?.map(toBlock) };
  return {
    role,
    content: [
      ...(content === null ? [] : [{ type: "text", text: content }]),
      ...tool_calls.map(({ id, function: { name, arguments: text } }) => ({
        type: "tool_use",
        id,
        name,
        input: JSON.parse(text),
      })),
    ],
  };
}

function toBlock({ text, image_url }: { text?: string; image_url?: { url: string } }): unknown {
  if (image_url === undefined) return { type: "text", text };
  const [head = "", data = ""] = image_url.url.split(",");
  return { type: "image", source: { type: "base64", media_type: head.slice(5, head.indexOf(";")), data } };
}

function toCompletion({ id, model, content, usage }: Answer): unknown {
  return {
    id,
    object: "chat.completion",
    created: Math.floor(Date.now() / 1000),
    model,
    choices: [{
      index: 0,
      message: { role: "assistant", content: content.map((block) => block.text).join("") },
      finish_reason: "stop",
    }],
    usage: {
      prompt_tokens: usage.input_tokens,
      completion_tokens: usage.output_tokens,
      total_tokens: usage.input_tokens + usage.output_tokens,
    },
  };
}

function toChunk(event: StreamEvent): unknown {
  const choice = (delta: unknown, finish_reason: string | null = null) => ({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: Math.floor(Date.now() / 1000),
    model: "model",
    choices: [{ index: 0, delta, finish_reason }],
  });
  switch (event.type) {
    case "message_start":
      return choice({ role: "assistant", content: "" });
    case "content_block_delta":
      return choice({ content: event.delta?.text });
    case "message_delta":
      return choice({}, "stop");
  }
}

/** One text per event, with its lines. */
function events(): TransformStream<string, string> {
  let rest = "";
  return new TransformStream({
    transform(text, controller) {
      rest += text;
      for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
        controller.enqueue(rest.slice(0, end));
        rest = rest.slice(end + 2);
      }
    },
  });
}

function rewrite(cross: boolean): TransformStream<string, string> {
  return new TransformStream({
    transform(text, controller) {
      const lines = text.split("\n");
      const data = lines.find((line) => line.startsWith("data:"))?.slice(5).trim() ?? "";
      if (data === "[DONE]") return controller.enqueue("data: [DONE]\n\n");
      const event: StreamEvent = JSON.parse(data);
      if (!cross) {
        const name = lines.find((line) => line.startsWith("event:"));
        if (event.model !== undefined) event.model = "model";
        return controller.enqueue(`${name === undefined ? "" : `${name}\n`}data: ${JSON.stringify(event)}\n\n`);
      }
      const chunk = toChunk(event);
      if (chunk !== undefined) controller.enqueue(`data: ${JSON.stringify(chunk)}\n\n`);
      if (event.type === "message_stop") controller.enqueue("data: [DONE]\n\n");
    },
  });
}

Deno.serve({ hostname: "127.0.0.1", port: Number(port), onListen: () => {} }, async (request) => {
  const { pathname } = new URL(request.url);
  const cross = pathname.startsWith("/cross/");
  const path = cross ? pathname.slice(6).replace("chat/completions", "messages") : pathname;
  const requestBody: ChatRequest = await request.json();
  requestBody.model = "model-1";
  const response = await fetch(upstream + path, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: request.headers.get("authorization") ?? "" },
    body: JSON.stringify(cross ? toMessages(requestBody) : requestBody),
  });
  if (!requestBody.stream || response.body === null) {
    const answer = await response.json();
    answer.model = "model";
    return Response.json(cross ? toCompletion(answer) : answer, { status: response.status });
  }
  const body = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(events()).pipeThrough(rewrite(cross))
    .pipeThrough(new TextEncoderStream());
  return new Response(body, { headers: { "content-type": "text/event-stream", "cache-control": "no-cache" } });
});
