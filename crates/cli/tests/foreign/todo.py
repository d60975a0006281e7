"""A list of things to do, in Textual."""
from textual.app import App
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Footer, Header, Input, Label, ListItem, ListView


class Sure(ModalScreen[bool]):
    def compose(self):
        with Vertical():
            yield Label("Delete it?")
            yield Button("Yes", id="yes")
            yield Button("No", id="no")

    def on_button_pressed(self, event):
        self.dismiss(event.button.id == "yes")


class Todo(App):
    TITLE = "Things to do"
    BINDINGS = [("f2", "delete", "Delete"), ("ctrl+q", "quit", "Quit")]

    def compose(self):
        yield Header()
        yield Input(placeholder="What is to be done?")
        yield ListView()
        yield Label("0 things", id="count")
        yield Footer()

    def on_input_submitted(self, event):
        things = self.query_one(ListView)
        things.append(ListItem(Label(event.value)))
        event.input.value = ""
        self.call_after_refresh(self.count)

    def count(self):
        self.query_one("#count", Label).update(f"{len(self.query_one(ListView).children)} things")

    def action_delete(self):
        self.push_screen(Sure(), self.deleted)

    async def deleted(self, sure):
        if sure:
            await self.query_one(ListView).children[0].remove()
            self.count()


Todo().run()
