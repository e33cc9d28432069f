"""The official SDKs of OpenAI and Anthropic for Python, in default settings."""

import json

import anthropic
import openai

from checks import PNG, QUESTIONS, SLOW, TWO_IMAGES, ZONE, clock, expect, run_checks


def chat_checks(route):
    client = openai.OpenAI(base_url=f"{route['url']}/v1", api_key=route["key"], max_retries=0)
    model = route["model"]
    tools = [{"type": "function", "function": {"name": "clock", "parameters": ZONE, "strict": True}}]

    def streaming():
        with client.chat.completions.stream(
            model=model, messages=[{"role": "user", "content": "Plain words"}]
        ) as stream:
            text = "".join(event.delta for event in stream if event.type == "content.delta")
        expect(text, "Plain words")

    def loop():
        for streamed in (False, True):
            messages = []

            def ask():
                if not streamed:
                    return client.chat.completions.create(model=model, messages=messages, tools=tools).choices[0].message
                with client.chat.completions.stream(model=model, messages=messages, tools=tools) as stream:
                    return stream.get_final_completion().choices[0].message

            for question, wanted in QUESTIONS:
                messages.append({"role": "user", "content": question})
                calling = ask()
                messages.append(calling)
                for call in calling.tool_calls:
                    content = clock(**json.loads(call.function.arguments))
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
                telling = ask()
                expect(telling.content, wanted)
                messages.append(telling)

    def images():
        image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
        content = [{"type": "text", "text": "Two."}, image, image]
        answer = client.chat.completions.create(model=model, messages=[{"role": "user", "content": content}])
        expect(answer.choices[0].message.content, TWO_IMAGES)

    def abort():
        stream = client.chat.completions.create(model=model, messages=[{"role": "user", "content": SLOW}], stream=True)
        next(iter(stream))
        stream.close()
        answer = client.chat.completions.create(model=model, messages=[{"role": "user", "content": "Back"}])
        expect(answer.choices[0].message.content, "Back")

    return {"streaming": streaming, "tools": loop, "images": images, "abort": abort}


def responses_checks(route):
    client = openai.OpenAI(base_url=f"{route['url']}/v1", api_key=route["key"], max_retries=0)
    model = route["model"]
    tools = [{"type": "function", "name": "clock", "parameters": ZONE, "strict": True}]

    def streaming():
        with client.responses.stream(model=model, input="Plain words") as stream:
            text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        expect(text, "Plain words")

    def loop():
        for streamed in (False, True):
            earlier = None

            def ask(items):
                options = {"model": model, "input": items, "tools": tools, "reasoning": {"effort": "low"}}
                if earlier is not None:
                    options["previous_response_id"] = earlier
                if not streamed:
                    return client.responses.create(**options)
                with client.responses.stream(**options) as stream:
                    return stream.get_final_response()

            for question, wanted in QUESTIONS:
                calling = ask([{"role": "user", "content": question}])
                earlier = calling.id
                telling = ask(
                    [
                        {
                            "type": "function_call_output",
                            "call_id": item.call_id,
                            "output": clock(**json.loads(item.arguments)),
                        }
                        for item in calling.output
                        if item.type == "function_call"
                    ]
                )
                earlier = telling.id
                expect(telling.output_text, wanted)

    def images():
        image = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"}
        content = [{"type": "input_text", "text": "Two."}, image, image]
        answer = client.responses.create(model=model, input=[{"role": "user", "content": content}])
        expect(answer.output_text, TWO_IMAGES)

    def compact():
        items = [{"role": "user", "content": "The code word is heron."}]
        compacted = client.responses.compact(model=model, input=items)
        answer = client.responses.create(
            model=model, input=[*compacted.output, {"role": "user", "content": "Go on"}], store=False
        )
        if "Go on" not in answer.output_text:
            raise AssertionError(answer.output_text)

    def abort():
        stream = client.responses.create(model=model, input=SLOW, stream=True)
        next(iter(stream))
        stream.close()
        expect(client.responses.create(model=model, input="Back").output_text, "Back")

    return {"streaming": streaming, "tools": loop, "images": images, "compaction": compact, "abort": abort}


def messages_checks(route):
    client = anthropic.Anthropic(base_url=f"{route['url']}/anthropic", api_key=route["key"], max_retries=0)
    model = route["model"]
    tools = [{"name": "clock", "description": "The time", "input_schema": ZONE}]

    def text_of(message):
        return "".join(block.text for block in message.content if block.type == "text")

    def say(content):
        return client.messages.create(model=model, max_tokens=2000, messages=[{"role": "user", "content": content}])

    def streaming():
        with client.messages.stream(
            model=model, max_tokens=2000, messages=[{"role": "user", "content": "Plain words"}]
        ) as stream:
            text = "".join(stream.text_stream)
        expect(text, "Plain words")

    def loop():
        for streamed in (False, True):
            messages = []

            def ask():
                options = {
                    "model": model,
                    "max_tokens": 4000,
                    "messages": messages,
                    "tools": tools,
                    "thinking": {"type": "enabled", "budget_tokens": 1500},
                }
                if not streamed:
                    return client.messages.create(**options)
                with client.messages.stream(**options) as stream:
                    return stream.get_final_message()

            for question, wanted in QUESTIONS:
                messages.append({"role": "user", "content": question})
                calling = ask()
                messages.append({"role": "assistant", "content": calling.content})
                results = [
                    {"type": "tool_result", "tool_use_id": block.id, "content": clock(**block.input)}
                    for block in calling.content
                    if block.type == "tool_use"
                ]
                messages.append({"role": "user", "content": results})
                telling = ask()
                expect(text_of(telling), wanted)
                messages.append({"role": "assistant", "content": telling.content})

    def runner():
        @anthropic.beta_tool
        def clock(zone: str) -> str:
            """The time.

            Args:
                zone: A city.
            """
            return f"Noon in {zone}"

        messages = [{"role": "user", "content": QUESTIONS[1][0]}]
        last = client.beta.messages.tool_runner(
            model=model, max_tokens=2000, messages=messages, tools=[clock]
        ).until_done()
        expect(text_of(last), QUESTIONS[1][1])

    def images():
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
        expect(text_of(say([{"type": "text", "text": "Two."}, image, image])), TWO_IMAGES)

    def lists():
        messages = [{"role": "user", "content": "Plain words"}]
        expect(client.messages.count_tokens(model=model, messages=messages).input_tokens > 0, True)
        expect(model in [row.id for row in client.models.list(limit=1)], True)

    def abort():
        with client.messages.stream(
            model=model, max_tokens=2000, messages=[{"role": "user", "content": SLOW}]
        ) as stream:
            next(iter(stream.text_stream))
        expect(text_of(say("Back")), "Back")

    return {
        "streaming": streaming,
        "tools": loop,
        "tool runner": runner,
        "images": images,
        "lists": lists,
        "abort": abort,
    }


run_checks(f"openai {openai.__version__} for Python, chat", chat_checks)
run_checks(f"openai {openai.__version__} for Python, responses", responses_checks)
run_checks(f"anthropic {anthropic.__version__} for Python", messages_checks)
