"""What tests of wrong use share."""


def fails(kind, part, function, *arguments, **options):
    """That the call raises this kind of exception, whose text has this part."""
    try:
        function(*arguments, **options)
    except kind as error:
        assert part in str(error), error
    else:
        raise AssertionError(f"nobody said: {part}")
