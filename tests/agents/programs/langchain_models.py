"""LangChain for Python: its models and an agent."""

import os

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from checks import PNG, QUESTIONS, SLOW, TWO_IMAGES, expect, run_checks

NAME = os.environ["SLUICE_CLIENT"]


@tool
def clock(zone: str) -> str:
    """The time."""
    return f"Noon in {zone}"


def chat(route, **options):
    return ChatOpenAI(
        model=route["model"], base_url=f"{route['url']}/v1", api_key=route["key"], max_retries=0, **options
    )


def responses(route):
    return chat(route, use_responses_api=True)


def messages(route):
    return ChatAnthropic(
        model=route["model"], base_url=f"{route['url']}/anthropic", api_key=route["key"], max_retries=0
    )


def stream(model, messages):
    whole = None
    for chunk in model.stream(messages):
        whole = chunk if whole is None else whole + chunk
    return whole


def checks_of(make):
    def make_checks(route):
        model = make(route)

        def streaming():
            expect(stream(model, "Plain words").text, "Plain words")

        def loop():
            calling_model = model.bind_tools([clock])
            for ask in (calling_model.invoke, lambda messages: stream(calling_model, messages)):
                conversation = []
                for question, wanted in QUESTIONS:
                    conversation.append(HumanMessage(question))
                    calling = ask(conversation)
                    conversation.append(calling)
                    for call in calling.tool_calls:
                        result = clock.invoke(call["args"])
                        conversation.append(ToolMessage(result, tool_call_id=call["id"]))
                    telling = ask(conversation)
                    expect(telling.text, wanted)
                    conversation.append(telling)

        def agent():
            result = create_agent(model, [clock]).invoke({"messages": [HumanMessage(QUESTIONS[1][0])]})
            expect(result["messages"][-1].text, QUESTIONS[1][1])

        def images():
            image = {"type": "image", "base64": PNG, "mime_type": "image/png"}
            expect(model.invoke([HumanMessage([{"type": "text", "text": "Two."}, image, image])]).text, TWO_IMAGES)

        def abort():
            chunks = model.stream(SLOW)
            next(chunks)
            chunks.close()
            expect(model.invoke("Back").text, "Back")

        return {"streaming": streaming, "tools": loop, "agent": agent, "images": images, "abort": abort}

    return make_checks


run_checks(f"{NAME}, chat", checks_of(chat))
run_checks(f"{NAME}, responses", checks_of(responses))
run_checks(f"{NAME}, messages", checks_of(messages))
