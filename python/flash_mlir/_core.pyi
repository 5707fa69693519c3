"""The native part of the package."""

from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

from .compiler import Machine

version: str
open_size: int
most_short_rows: int

def get_cpu_length(length: int) -> int: ...
def get_size_class(size: int) -> int: ...
def get_targets() -> str: ...
def get_target_number(target: str, key: str) -> int: ...
def get_device(device: int) -> Tuple[str, str, int, Optional[str]]: ...
def set_thread_count(count: int) -> None: ...
def inspect(object: Any, name: str) -> Tuple[int, bool, bool, int]: ...

class Kernel:
    @staticmethod
    def compile(text: str, machine: Union[str, Machine], function: str, schedule: str, versions: str) -> Kernel: ...
    @staticmethod
    def deserialize(bytes: bytes) -> Kernel: ...
    @staticmethod
    def specialize(text: str, machine: Union[str, Machine], function: str, schedule: str, sizes: Sequence[Sequence[int]]) -> str: ...
    @staticmethod
    def specialize_each(
        text: str, machine: Union[str, Machine], calls: Sequence[Sequence[Sequence[int]]]
    ) -> Tuple[List[str], List[int]]: ...
    @staticmethod
    def plan(
        text: str, machine: Union[str, Machine], function: str, schedule: str, sizes: Sequence[Sequence[int]]
    ) -> Optional[Tuple[str, str]]: ...
    @property
    def target(self) -> str: ...
    @property
    def arguments(self) -> List[Tuple[str, Tuple[Optional[int], ...]]]: ...
    @property
    def results(self) -> List[Tuple[str, Tuple[Optional[int], ...]]]: ...
    def text(self, stage: str) -> str: ...
    def save(self, path: str) -> None: ...
    def count_tiles(self, sizes: Sequence[Sequence[int]]) -> Tuple[int, int, int, int, int]: ...
    def serialize(self) -> bytes: ...
    def load(self, device: int) -> None: ...
    def count_bytes(self, device: int, argument_sizes: Sequence[Sequence[int]]) -> Tuple[int, int]: ...
    def call(self, arguments: Sequence[Any]) -> List[Any]: ...
    def check(self, arguments: Sequence[Any]) -> None: ...

class Attention:
    def __init__(
        self,
        compile: Callable[[str, int, int, int, int, List[List[int]]], Kernel],
        compile_gradients: Callable[[str, int, int, int, int, List[List[int]], bool, Tuple[int, ...]], Kernel],
        captures: List[Tuple[str, int, bool, bool, int, List[Tuple[int, List[Any], str]]]],
        return_lse: bool,
        dispatch: Callable[..., Any],
        num_of_plan: int,
        num_of_gradients: int,
        packs_queries: bool,
        key_rows: str,
    ) -> None: ...
    def __call__(
        self,
        query: Any,
        key: Any,
        value: Any,
        lengths: Optional[Any],
        sink: Optional[Any],
        captured: Tuple[Any, ...],
    ) -> Any: ...
    def call_into(
        self,
        query: Any,
        key: Any,
        value: Any,
        lengths: Optional[Any],
        sink: Optional[Any],
        captured: Tuple[Any, ...],
        out: Any,
    ) -> Any: ...
    def run(
        self,
        query: Any,
        key: Any,
        value: Any,
        lengths: Optional[Any],
        sink: Optional[Any],
        captured: Tuple[Any, ...],
    ) -> Any: ...
    def call_rows(
        self,
        query: Any,
        key: Any,
        value: Any,
        lengths: Optional[Any],
        sink: Optional[Any],
        captured: Tuple[Any, ...],
        out: Optional[Any] = None,
    ) -> Any: ...
    def prepare(
        self,
        query: Any,
        key: Any,
        value: Any,
        lengths: Optional[Any],
        sink: Optional[Any],
        captured: Tuple[Any, ...],
    ) -> None: ...
    def differentiate(
        self,
        query: Any,
        key: Any,
        value: Any,
        output: Any,
        lse: Any,
        output_grad: Any,
        lse_grad: Optional[Any],
        lengths: Optional[Any],
        sink: Optional[Any],
        captured: Tuple[Any, ...],
        wrt: Sequence[int],
    ) -> List[Any]: ...
    def check(
        self,
        query: Any,
        key: Any,
        value: Any,
        lengths: Optional[Any],
        sink: Optional[Any],
        captured: Tuple[Any, ...],
    ) -> Tuple[str, int, int, int, int]: ...

class Shortcut:
    def __init__(self, are_rows: bool) -> None: ...
    @property
    def call(self) -> Callable[..., Any]: ...
    def keep(self, attention: Attention, *arguments: Any) -> None: ...
    def clear(self) -> None: ...

class Appending:
    def __init__(self, compile: Callable[[str, int, int, bool, int], Kernel], shortcut: Shortcut) -> None: ...
    @property
    def call_again(self) -> Callable[..., Any]: ...
    def append(self, *arrays: Any) -> Any: ...
